import json
import shutil
from pathlib import Path

import pytest

from ftpipeline.errors import BaseModelMismatchError
from ftpipeline.steps.base_pin import base_tree, check_base
from ftpipeline.store.trees import tree_digest
from ftpipeline_tests.shared import shared
from ftpipeline_tests.tiny_model import build_tiny_bert, shard


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return shard(build_tiny_bert(tmp_path / "base"))


def adapter_of(base: Path, folder: Path) -> Path:
    folder.mkdir()
    config = {"base_model_name_or_path": base_tree(base), "revision": None, "r": 16}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def test_the_digest_is_the_one_that_the_store_knows_the_folder_by(base: Path) -> None:
    (base / "1_Pooling").mkdir()
    (base / "1_Pooling" / "config.json").write_text("{}")
    assert base_tree(base) == tree_digest(base)


def test_an_adapter_is_accepted_on_a_copy_of_the_base_it_was_trained_on(base: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(base, tmp_path / "elsewhere" / "copy"))
    assert check_base(copy, adapter_of(base, tmp_path / "adapter")) == base_tree(base)


@pytest.mark.parametrize(
    "name", ["model-00002-of-00002.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"]
)
def test_a_byte_in_any_file_of_the_base_is_another_base(base: Path, tmp_path: Path, name: str) -> None:
    adapter = adapter_of(base, tmp_path / "adapter")
    data = (base / name).read_bytes()
    (base / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(BaseModelMismatchError, match="was trained on base model sha256:"):
        check_base(base, adapter)


def test_an_adapter_that_names_its_base_by_path_or_not_at_all_is_refused(base: Path, tmp_path: Path) -> None:
    case = json.loads(shared("cases", "c", "adapter_wrong_base.json").read_text())
    for name, text in {"path": json.dumps(case["adapter_config"]), "none": "{}", "torn": "{", "list": "[]"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter_config.json").write_text(text)
        with pytest.raises(BaseModelMismatchError, match="does not say by digest"):
            check_base(base, tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BaseModelMismatchError, match=r"adapter_config\.json"):
        check_base(base, tmp_path / "empty")
