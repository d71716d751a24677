"""The steps on the real runtime: a trained adapter becomes reports that the gate can read."""

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from ftpipeline.backends.onnx_export import OnnxExporter
from ftpipeline.backends.onnx_scorer import OnnxScorer
from ftpipeline.digest import of_file
from ftpipeline.schema import ROLES
from ftpipeline.steps.evaluate import evaluate
from ftpipeline.steps.export import export
from ftpipeline.steps.gate_reports import report_problems
from ftpipeline.steps.report import report
from ftpipeline_tests.tiny_model import LABELS, build_tiny_split, tiny_train_params

BASE, ARTIFACT, SET = (f"sha256:{64 * letter}" for letter in "012")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, trained_adapter: Path) -> Path:
    """The train step's output folder, of which the export reads the adapter."""
    folder = tmp_path_factory.mktemp("train")
    (folder / "adapter").symlink_to(trained_adapter)
    return folder


def write_eval_set(split: Path, folder: Path) -> Path:
    folder.mkdir()
    rows = pyarrow.parquet.read_table(split / "validation.parquet").rename_columns({"label": "expected"})
    pyarrow.parquet.write_table(rows, folder / "rows.parquet")
    (folder / "eval_set.json").write_text('{"name": "gold", "version": "v1"}', encoding="utf-8")
    return folder


def test_an_adapter_becomes_a_report_that_the_gate_can_read(tmp_path: Path, base_model: Path, trained: Path) -> None:
    split = build_tiny_split(tmp_path / "split")
    artifact = tmp_path / "out"
    artifact.mkdir()
    params = tiny_train_params(base_model) | {
        "export": {"merge_adapter": True, "quantize": "int8"},
        "abstention": {"max_abstain": 0.1},
        "base_model": {"tree_sha256": BASE},
    }
    inputs = {"adapter": trained, "base_model": base_model, "split": split}
    facts = export(inputs, params, artifact, exporter=OnnxExporter(), scorer=OnnxScorer())
    assert 0 <= facts["validation_abstained"] <= 1
    assert facts["files"]["model.onnx"] == (artifact / "model.onnx").stat().st_size

    evaluations = {f"candidate_{role}": tmp_path / role for role in ROLES}
    eval_set = write_eval_set(split, tmp_path / "eval_set")
    for role in ROLES:
        (tmp_path / role).mkdir()
        settings = {"artifact": ARTIFACT, "eval_set": SET, "role": role, "labels": list(LABELS)}
        evaluate(
            {"artifact": artifact, "eval_set": eval_set},
            settings | {"evaluation": {"batch_size": 4}},
            tmp_path / role,
            scorer=OnnxScorer(),
        )
    (tmp_path / "report").mkdir()
    report(evaluations, {"candidate": ARTIFACT, "production": None}, tmp_path / "report")
    written = json.loads((tmp_path / "report" / "candidate.json").read_bytes())
    assert report_problems("candidate", written) == []
    assert written["counts"]["task"]["n"] == 16
    assert of_file(tmp_path / "task" / "answers.parquet") == of_file(tmp_path / "safety" / "answers.parquet")
