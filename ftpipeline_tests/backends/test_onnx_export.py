"""An export's bytes depend on the model alone, and its folder is all that a server needs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ftpipeline.backends.merge import merge
from ftpipeline.backends.onnx_export import OnnxExporter
from ftpipeline.backends.onnx_scorer import open_session
from ftpipeline.digest import of_file
from ftpipeline.errors import ExportCheckError, PipelineFileError
from ftpipeline.records import Facts
from ftpipeline.steps.tokenizer import tokenizer_files
from ftpipeline_tests.backends.conftest import export_params
from ftpipeline_tests.tiny_model import LABELS

_EXPORT_IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from ftpipeline.backends.onnx_export import OnnxExporter
base, adapter, out, params = sys.argv[1:]
OnnxExporter().export(Path(base), Path(adapter), json.loads(params), Path(out))
"""


def digests(folder: Path) -> dict[str, str]:
    return {file.name: of_file(file) for file in folder.iterdir() if file.name != "export.json"}


def test_another_process_and_other_folders_give_equal_bytes(
    tmp_path: Path, base_model: Path, trained_adapter: Path, exported: Path
) -> None:
    base = shutil.copytree(base_model, tmp_path / "elsewhere" / "base")
    adapter = shutil.copytree(trained_adapter, tmp_path / "elsewhere" / "adapter")
    out = tmp_path / "out"
    out.mkdir()
    arguments = [str(base), str(adapter), str(out), json.dumps(export_params())]
    command = [sys.executable, "-c", _EXPORT_IN_ANOTHER_PROCESS, *arguments]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert digests(out) == digests(exported)


def test_the_file_holds_no_path_of_the_machine_that_made_it(exported: Path) -> None:
    data = (exported / "model.onnx").read_bytes()
    for place in (Path(np.__file__).parent.parent, Path.cwd(), exported):
        assert str(place).encode() not in data
    assert b"pytorch" not in data


def test_only_served_files_are_left_behind(exported: Path) -> None:
    assert {file.name for file in exported.parent.iterdir()} == {"out", "unquantized"}
    own = {"model.onnx", "config.json", "labels.json", "export.json"}
    assert {file.name for file in exported.iterdir()} == own | {"tokenizer.json", "tokenizer_config.json", "vocab.txt"}


def test_tokenizer_files_are_the_base_models_own(base_model: Path, exported: Path) -> None:
    for file in tokenizer_files(base_model):
        assert (exported / file).read_bytes() == (base_model / file).read_bytes()


def test_labels_stand_in_the_order_of_their_class_ids(exported: Path) -> None:
    config = json.loads((exported / "config.json").read_text(encoding="utf-8"))
    assert json.loads((exported / "labels.json").read_text(encoding="utf-8")) == list(LABELS)
    assert [config["id2label"][str(index)] for index in range(len(LABELS))] == list(LABELS)


def test_the_unquantized_export_answers_as_the_merged_model_does(
    base_model: Path, trained_adapter: Path, unquantized: Path
) -> None:
    merged = merge(base_model, trained_adapter, LABELS)
    feed = {name: tensor.numpy() for name, tensor in merged.probe.items()}
    (logits,) = open_session(unquantized / "model.onnx").run(["logits"], feed)
    assert np.allclose(logits, merged.logits.numpy(), atol=1e-4)


def test_int8_is_smaller_and_reports_an_error_for_each_quantized_weight(
    exported: Path, unquantized: Path, export_facts: Facts
) -> None:
    assert (exported / "model.onnx").stat().st_size < (unquantized / "model.onnx").stat().st_size
    errors = export_facts["quantization_errors"]
    assert {"bert.embeddings.word_embeddings.weight", "classifier.weight_Transposed"} <= errors.keys()
    assert all(0.0 < error < 0.5 for error in errors.values())


def test_texts_longer_than_the_base_models_positions_are_refused(
    tmp_path: Path, base_model: Path, trained_adapter: Path
) -> None:
    with pytest.raises(ExportCheckError):
        OnnxExporter().export(base_model, trained_adapter, export_params("none") | {"max_length": 65}, tmp_path / "out")


@pytest.mark.parametrize("change", [{"merge_adapter": False}, {"quantize": "int4"}])
def test_an_export_that_onnx_cannot_hold_is_refused(
    tmp_path: Path, base_model: Path, trained_adapter: Path, change: dict[str, object]
) -> None:
    params = export_params()
    params["export"] |= change
    with pytest.raises(PipelineFileError, match=next(iter(change))):
        OnnxExporter().export(base_model, trained_adapter, params, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
