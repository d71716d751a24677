"""An export's bytes depend on the model alone, its parts agree, and its folder is all that a server needs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ftpipeline.backends import causal_load
from ftpipeline.backends.causal_export import CausalExporter, check_parts
from ftpipeline.backends.load_test import load_test
from ftpipeline.digest import of_file
from ftpipeline.errors import ExportCheckError, PipelineFileError
from ftpipeline.steps.artifact import check_files
from ftpipeline_tests.backends.causal.conftest import Exported
from ftpipeline_tests.backends.causal.tiny import MAX_LENGTH, export_params
from ftpipeline_tests.tiny_model import LABELS

_EXPORT_IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from ftpipeline.backends.causal_export import CausalExporter
base, adapter, out, params = sys.argv[1:]
CausalExporter().export(Path(base), Path(adapter), json.loads(params), Path(out))
"""
_TOKENIZER = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}


def digests(folder: Path) -> dict[str, str]:
    return {file.name: of_file(file) for file in folder.iterdir() if file.name != "export.json"}


@pytest.fixture
def broken(exported: Exported, tmp_path: Path) -> Path:
    """A copy of the GGUF export that a test may damage."""
    return Path(shutil.copytree(exported.gguf, tmp_path / "broken"))


def test_another_process_and_other_folders_give_equal_bytes(
    tmp_path: Path, llama: Path, llama_adapter: Path, exported: Exported
) -> None:
    base = shutil.copytree(llama, tmp_path / "elsewhere" / "base")
    adapter = shutil.copytree(llama_adapter, tmp_path / "elsewhere" / "adapter")
    arguments = [str(base), str(adapter), str(tmp_path / "out"), json.dumps(export_params())]
    command = [sys.executable, "-c", _EXPORT_IN_ANOTHER_PROCESS, *arguments]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert digests(tmp_path / "out") == digests(exported.gguf)


def test_only_served_files_are_left_behind(exported: Exported) -> None:
    own = {"config.json", "labels.json", "export.json"} | _TOKENIZER
    assert {file.name for file in exported.gguf.iterdir()} == own | {"model.gguf"}
    assert {file.name for file in exported.merged.iterdir()} == own | {"model.safetensors"}
    for folder in (exported.gguf, exported.merged):
        check_files(folder)


def test_what_was_measured_on_the_way_is_reported(exported: Exported) -> None:
    assert 0 < exported.facts["max_logit_difference"] < 1e-3
    assert exported.facts["quantization_errors"].keys() >= {"model.embed_tokens.weight"}


def test_the_unquantized_model_can_be_what_is_served(llama: Path, llama_adapter: Path, tmp_path: Path) -> None:
    CausalExporter().export(llama, llama_adapter, export_params("none"), tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").is_file()
    assert json.loads((tmp_path / "out" / "labels.json").read_text("utf-8")) == list(LABELS)


@pytest.mark.parametrize("change", [{"merge_adapter": False}, {"quantize": "int4"}])
def test_an_export_of_another_form_is_refused(
    llama: Path, llama_adapter: Path, tmp_path: Path, change: dict[str, object]
) -> None:
    params = export_params()
    params["export"] |= change
    with pytest.raises(PipelineFileError, match=next(iter(change))):
        CausalExporter().export(llama, llama_adapter, params, tmp_path / "out")


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("vocab_size", 7, "vocab_size is 7"),
        ("eos_token_id", 1, "eos_token_id is 1"),
        ("num_hidden_layers", 3, "2 layers"),
    ],
)
def test_a_configuration_that_disagrees_with_the_weights_is_refused(
    broken: Path, field: str, value: int, problem: str
) -> None:
    path = broken / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {field: value}), "utf-8")
    with pytest.raises(ExportCheckError, match=problem):
        check_parts(broken)


@pytest.mark.parametrize("name", sorted({"model.gguf", "config.json", "labels.json"} | _TOKENIZER))
def test_a_folder_that_lacks_a_file_is_refused(broken: Path, name: str) -> None:
    (broken / name).unlink()
    with pytest.raises(ExportCheckError, match="lacks"):
        check_files(broken)


def test_a_file_that_no_server_needs_is_refused(broken: Path) -> None:
    (broken / "optimizer.pt").write_bytes(b"left behind")
    with pytest.raises(ExportCheckError, match=r"holds optimizer\.pt"):
        check_files(broken)


@pytest.mark.parametrize("content", [None, b"GGUF"])
def test_an_export_that_does_not_load_in_a_process_of_its_own_is_refused(broken: Path, content: bytes | None) -> None:
    (broken / "model.gguf").unlink()
    if content is not None:
        (broken / "model.gguf").write_bytes(content)
    with pytest.raises(ExportCheckError, match="cannot be served from its own folder"):
        load_test(causal_load, broken, MAX_LENGTH)
