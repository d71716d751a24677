"""Step `export`: the threshold is calibrated on the served file, and a folder that cannot be served is refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from ftpipeline.digest import hex_of
from ftpipeline.errors import EmptyResultError, ExportCheckError, LabelError, TokenizerMismatchError
from ftpipeline.steps.artifact import check_files, read_export_record
from ftpipeline.steps.export import export
from ftpipeline.steps.tokenizer import tokenizer_sha256
from ftpipeline_tests.steps.simulators import LABELS, WordExporter, WordScorer

BASE = "sha256:" + 64 * "b"
CONFIDENCES = [row / 100 for row in range(40, 80)]


def write_inputs(folder: Path, texts: list[str]) -> dict[str, Path]:
    inputs = {name: folder / name for name in ("base_model", "adapter", "split")}
    for path in inputs.values():
        path.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (inputs["base_model"] / name).write_text("{}", encoding="utf-8")
    table = pyarrow.table({"text": pyarrow.array(texts, pyarrow.string())})
    pyarrow.parquet.write_table(table, inputs["split"] / "validation.parquet")
    return inputs


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    notes = ["fragile " if row < 3 else "" for row in range(len(CONFIDENCES))]
    return write_inputs(tmp_path, [f"billing {note}{c}" for note, c in zip(notes, CONFIDENCES, strict=True)])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def params(inputs: dict[str, Path], **changes: Any) -> dict[str, Any]:
    return {
        "task": "sequence_classification",
        "labels": list(LABELS),
        "tokenizer_sha256": hex_of(tokenizer_sha256(inputs["base_model"])),
        "train": {"max_length": 16},
        "export": {"merge_adapter": True, "quantize": "int8"},
        "abstention": {"max_abstain": 0.05},
        "base_model": {"tree_sha256": BASE},
    } | changes


def run(inputs: dict[str, Path], out: Path, exporter: WordExporter | None = None, **changes: Any) -> dict[str, Any]:
    ports = {"exporter": exporter or WordExporter(), "scorer": WordScorer()}
    return export(inputs, params(inputs, **changes), out, **ports)


def test_the_record_says_how_the_artifact_is_served(inputs: dict[str, Path], out: Path) -> None:
    run(inputs, out)
    record = read_export_record(out)
    assert (record.labels, record.max_length, record.quantize, record.base_model) == (LABELS, 16, "int8", BASE)
    assert json.loads((out / "export.json").read_bytes())["format_version"] == 1


def test_no_more_of_validation_abstains_than_allowed(inputs: dict[str, Path], out: Path) -> None:
    facts = run(inputs, out)
    assert read_export_record(out).threshold() == facts["abstain_threshold"] == 0.42
    assert (facts["validation_rows"], facts["validation_abstained"]) == (40, 2)
    assert facts["validation_abstain_share"] == 0.05


def test_answers_changed_by_quantization_are_counted(inputs: dict[str, Path], out: Path) -> None:
    assert run(inputs, out)["answers_changed_by_quantization"] == 3


def test_an_export_that_is_not_quantized_changes_no_answer(inputs: dict[str, Path], out: Path) -> None:
    facts = run(inputs, out, export={"merge_adapter": True, "quantize": "none"})
    assert facts["answers_changed_by_quantization"] == 0
    assert read_export_record(out).quantize == "none"


def test_file_sizes_are_reported_for_every_file_and_nothing_else_is_left(inputs: dict[str, Path], out: Path) -> None:
    facts = run(inputs, out)
    assert facts["files"] == {file.name: file.stat().st_size for file in out.iterdir()}
    assert {path.name for path in out.parent.iterdir()} == {"out", *inputs}


def test_the_same_inputs_give_the_same_bytes(inputs: dict[str, Path], out: Path, tmp_path: Path) -> None:
    again = tmp_path / "elsewhere" / "out"
    again.mkdir(parents=True)
    run(inputs, out)
    run(inputs, again)
    assert {file.name: file.read_bytes() for file in again.iterdir()} == {f.name: f.read_bytes() for f in out.iterdir()}


def test_a_file_that_nothing_needs_is_refused(inputs: dict[str, Path], out: Path) -> None:
    with pytest.raises(ExportCheckError, match=r"holds fp32\.onnx"):
        run(inputs, out, WordExporter(extra="fp32.onnx"))


@pytest.mark.parametrize(
    "name", ["model.onnx", "tokenizer.json", "tokenizer_config.json", "config.json", "labels.json"]
)
def test_a_folder_that_cannot_be_served_is_refused(inputs: dict[str, Path], out: Path, name: str) -> None:
    with pytest.raises(ExportCheckError, match=f"lacks {name}"):
        run(inputs, out, WordExporter(lost=name))


def test_an_empty_file_counts_as_missing(inputs: dict[str, Path], out: Path) -> None:
    run(inputs, out)
    (out / "model.onnx").write_bytes(b"")
    with pytest.raises(ExportCheckError, match=r"lacks model\.onnx"):
        check_files(out)


def test_a_tokenizer_that_is_not_the_pinned_one_is_refused(inputs: dict[str, Path], out: Path) -> None:
    with pytest.raises(TokenizerMismatchError, match="pins 0000"):
        run(inputs, out, tokenizer_sha256=64 * "0")


def test_an_empty_validation_is_refused(tmp_path: Path, out: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyResultError):
        run(write_inputs(tmp_path / "empty", []), out)
    assert list(out.iterdir()) == []


def test_labels_that_stand_twice_are_refused(inputs: dict[str, Path], out: Path) -> None:
    with pytest.raises(LabelError, match="'login' is declared twice"):
        run(inputs, out, labels=["login", "billing", "login"])


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"format_version": 2}', '{"format_version": 1, "task": "sequence_classification"}'],
)
def test_a_record_that_is_not_understood_is_refused(inputs: dict[str, Path], out: Path, text: str) -> None:
    run(inputs, out)
    (out / "export.json").write_text(text, encoding="utf-8")
    with pytest.raises(ExportCheckError, match=r"export\.json"):
        read_export_record(out)
