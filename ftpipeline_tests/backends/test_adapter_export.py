"""An adapter that is exported alone names its base by hash, and answers on that base only."""

import json
import shutil
from pathlib import Path

import pytest

from ftpipeline.backends.adapter_export import AdapterExporter
from ftpipeline.backends.adapter_scorer import AdapterScorer
from ftpipeline.backends.onnx_scorer import OnnxScorer
from ftpipeline.errors import BaseModelMismatchError, ExportCheckError, PipelineFileError
from ftpipeline.steps.artifact import check_files, read_export_record, write_export_record
from ftpipeline.steps.base_pin import base_tree
from ftpipeline_tests.tiny_model import LABELS, WORDS

PARAMS = {
    "task": "sequence_classification",
    "labels": list(LABELS),
    "max_length": 16,
    "export": {"merge_adapter": False, "quantize": "none"},
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, base_model: Path, trained_adapter: Path, exported: Path) -> Path:
    out = tmp_path_factory.mktemp("alone") / "out"
    AdapterExporter().export(base_model, trained_adapter, PARAMS, out)
    changes = {"merge_adapter": False, "quantize": "none", "base_model": base_tree(base_model)}
    write_export_record(out, read_export_record(exported).model_copy(update=changes))
    return out


def test_the_folder_holds_adapter_tokenizer_and_the_bases_hash(alone: Path, base_model: Path) -> None:
    check_files(alone)
    assert {"adapter_model.safetensors", "adapter_config.json"} <= {file.name for file in alone.iterdir()}
    assert not list(alone.glob("model.*"))
    config = json.loads((alone / "adapter_config.json").read_text("utf-8"))
    assert config["base_model_name_or_path"] == base_tree(base_model) == read_export_record(alone).base_model


def test_it_answers_as_the_merged_model_does(alone: Path, base_model: Path, unquantized: Path, exported: Path) -> None:
    if not (unquantized / "export.json").is_file():
        shutil.copyfile(exported / "export.json", unquantized / "export.json")
    apart = AdapterScorer().on(base_model).score(alone, WORDS, batch_size=4)
    merged = OnnxScorer().score(unquantized, WORDS, batch_size=4)
    assert list(apart.predicted) == list(merged.predicted)
    assert list(apart.confidence) == pytest.approx(list(merged.confidence), abs=1e-4)


def test_without_its_base_it_answers_nothing(alone: Path) -> None:
    with pytest.raises(ExportCheckError, match="on its base model"):
        AdapterScorer().score(alone, WORDS, batch_size=4)


def test_on_another_base_of_equal_shapes_it_answers_nothing(alone: Path, base_model: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(base_model, tmp_path / "other"))
    (other / "vocab.txt").write_text("changed\n", "utf-8")
    with pytest.raises(BaseModelMismatchError):
        AdapterScorer().on(other).score(alone, WORDS, batch_size=4)
    with pytest.raises(BaseModelMismatchError):
        AdapterExporter().export(other, alone, PARAMS, tmp_path / "out")


def test_a_runtime_of_whole_models_refuses_an_adapter(base_model: Path) -> None:
    with pytest.raises(ExportCheckError, match=r"set export\.merge_adapter to true"):
        OnnxScorer().on(base_model)


def test_an_adapter_that_is_to_be_merged_is_refused(base_model: Path, trained_adapter: Path, tmp_path: Path) -> None:
    params = PARAMS | {"export": {"merge_adapter": True, "quantize": "none"}}
    with pytest.raises(PipelineFileError, match="set it to false"):
        AdapterExporter().export(base_model, trained_adapter, params, tmp_path / "out")
