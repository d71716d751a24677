import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ftpipeline import digest
from ftpipeline.backends.gguf_file import write_gguf
from ftpipeline.backends.gguf_model import GgufConverter
from ftpipeline.errors import InputError, MissingDependencyError, ModelFilesError, TreeError
from ftpipeline.records import Facts
from ftpipeline.steps.base_model import ModelFolder, base_model, packaged_folder
from ftpipeline.steps.ports import ModelHub
from ftpipeline.steps.tokenizer import tokenizer_sha256
from ftpipeline.store.trees import tree_digest
from ftpipeline_tests.tiny_llama import build_tiny_llama
from ftpipeline_tests.tiny_model import build_tiny_bert, shard

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class TinyHub(ModelHub):
    """A hub on which every repository is the tiny model, and which remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def _fetch(self, repo: str, revision: str, target: Path) -> None:
        self.asked.append((repo, revision))
        build_tiny_bert(target)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return build_tiny_bert(tmp_path / "model")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name a package that holds a tiny model and cannot be imported."""
    root = tmp_path / "site" / "packed_tiny_model"
    build_tiny_bert(root / "model")
    (root / "__init__.py").write_text("raise ImportError('a library that is not needed')")
    monkeypatch.syspath_prepend(str(root.parent))
    return "packed_tiny_model"


def freeze(out: Path, folder: Path | None = None, hub: ModelHub | None = None, **params: Any) -> Facts:
    out.mkdir()
    declared = {"name": "tiny", "source": "folder", "repo": "tiny", "revision": "sha256:" + "0" * 64} | params
    return base_model({}, declared, out, hub=hub or TinyHub(), folder=ModelFolder(folder), converter=GgufConverter())


def test_every_regular_file_is_taken_so_the_tree_digest_stays(model: Path, tmp_path: Path) -> None:
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text("{}")
    (model / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    freeze(tmp_path / "out", model)
    assert tree_digest(tmp_path / "out") == tree_digest(model)


def test_the_facts_identify_model_and_tokenizer(model: Path, tmp_path: Path) -> None:
    facts = freeze(tmp_path / "out", model)
    assert (facts["files"], facts["model_type"], facts["hidden_size"]) == (5, "bert", 32)
    assert facts["bytes"] == sum(path.stat().st_size for path in model.iterdir())
    assert facts["weights"] == {"model.safetensors": digest.of_file(model / "model.safetensors")}
    assert facts["tokenizer_sha256"] == digest.hex_of(tokenizer_sha256(model))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_model_without_a_needed_file_is_refused_by_its_name(model: Path, tmp_path: Path, name: str) -> None:
    (model / name).unlink()
    with pytest.raises(ModelFilesError, match=f"has no {name}"):
        freeze(tmp_path / "out", model)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model_type": 3}'])
def test_an_unusable_configuration_is_refused(model: Path, tmp_path: Path, text: str) -> None:
    (model / "config.json").write_text(text)
    with pytest.raises(ModelFilesError, match=r"config\.json"):
        freeze(tmp_path / "out", model)


def test_a_sharded_model_needs_every_shard_of_its_index(model: Path, tmp_path: Path) -> None:
    shard(model)
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert sorted(freeze(tmp_path / "whole", model)["weights"]) == shards
    (model / shards[1]).unlink()
    with pytest.raises(ModelFilesError, match=r"has no model-00002-of-00002\.safetensors"):
        freeze(tmp_path / "without", model)


def test_weights_that_were_cut_off_are_refused(model: Path, tmp_path: Path) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ModelFilesError, match=r"model\.safetensors of the base model is torn"):
        freeze(tmp_path / "out", model)


def test_a_link_is_refused(model: Path, tmp_path: Path) -> None:
    (model / "vocab.txt").rename(tmp_path / "vocab.txt")
    (model / "vocab.txt").symlink_to(tmp_path / "vocab.txt")
    with pytest.raises(TreeError, match=r"vocab\.txt"):
        freeze(tmp_path / "out", model)


@pytest.mark.parametrize("scheme", ["package://", ""])
def test_a_packaged_model_is_found_without_importing_the_package(package: str, tmp_path: Path, scheme: str) -> None:
    freeze(tmp_path / "out", source="package", repo=f"{scheme}{package}/model")
    assert tree_digest(tmp_path / "out") == tree_digest(packaged_folder(f"{package}/model"))
    assert package not in sys.modules


def test_a_package_that_is_not_installed_is_an_environment_problem() -> None:
    with pytest.raises(MissingDependencyError, match="no_such_package"):
        packaged_folder("package://no_such_package/model")


@pytest.mark.parametrize("repo", ["package://tiny/../secret", "package:///model", "package://a.b/model", "hub://a/b"])
def test_a_packaged_model_of_another_form_is_refused(repo: str) -> None:
    with pytest.raises(InputError, match="is not written package://"):
        packaged_folder(repo)


def test_a_hub_is_asked_for_the_commit(tmp_path: Path) -> None:
    hub = TinyHub()
    freeze(tmp_path / "out", hub=hub, source="hub", repo="org/tiny", revision=COMMIT)
    assert hub.asked == [("org/tiny", COMMIT)]


@pytest.mark.parametrize("revision", ["main", "v1.0", COMMIT[:12], COMMIT.upper()])
def test_a_hub_revision_that_is_not_pinned_is_never_asked_for(tmp_path: Path, revision: str) -> None:
    hub = TinyHub()
    with pytest.raises(InputError, match="is not pinned"):
        freeze(tmp_path / "out", hub=hub, source="hub", repo="org/tiny", revision=revision)
    assert hub.asked == []


@pytest.mark.parametrize("source", ["folder", "url"])
def test_a_source_that_is_unknown_or_not_bound_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(InputError, match=f"has source '{source}'"):
        freeze(tmp_path / "out", None, source=source)


def test_the_step_loads_no_training_library() -> None:
    script = (
        "import sys, ftpipeline.steps.base_model, ftpipeline.steps.train\nprint({'torch', 'pyarrow'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A model in one GGUF file."""
    path = tmp_path / "packed" / "tiny.gguf"
    path.parent.mkdir()
    write_gguf(build_tiny_llama(tmp_path / "llama"), path)
    return path


def test_a_gguf_file_is_converted_to_the_files_that_are_trained_from(packed: Path, tmp_path: Path) -> None:
    facts = [freeze(tmp_path / name, place) for name, place in (("file", packed), ("folder", packed.parent))]
    assert facts[0] == facts[1]
    assert facts[0]["model_type"] == "llama"
    assert tree_digest(tmp_path / "file") == tree_digest(tmp_path / "folder")
    assert not list((tmp_path / "file").glob("*.gguf"))


def test_safetensors_beside_a_gguf_file_are_what_is_taken(model: Path, packed: Path, tmp_path: Path) -> None:
    shutil.copyfile(packed, model / packed.name)
    freeze(tmp_path / "out", model)
    assert tree_digest(tmp_path / "out") == tree_digest(model)


def test_one_of_several_gguf_files_must_be_named(packed: Path, tmp_path: Path) -> None:
    shutil.copyfile(packed, packed.with_name("other.gguf"))
    with pytest.raises(InputError, match="holds 2 GGUF files"):
        freeze(tmp_path / "out", packed.parent)


def test_a_damaged_gguf_file_is_refused_by_its_name(packed: Path, tmp_path: Path) -> None:
    packed.write_bytes(packed.read_bytes()[:1000])
    with pytest.raises(InputError, match=r"tiny\.gguf"):
        freeze(tmp_path / "out", packed)
