"""Steps `evaluate` and `report`: the report holds what was measured, in the form that the gate reads."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from ftpipeline.errors import EvalSetError, ExportCheckError, GateRecordError, InputError, LabelError
from ftpipeline.records import Facts
from ftpipeline.schema import ROLES
from ftpipeline.steps.artifact import ExportRecord, write_export_record
from ftpipeline.steps.calibrate import Calibration
from ftpipeline.steps.evaluate import evaluate
from ftpipeline.steps.gate_reports import report_problems
from ftpipeline.steps.report import report
from ftpipeline_tests.steps.simulators import LABELS, WordScorer

ARTIFACT, PRODUCTION, SET = (f"sha256:{64 * letter}" for letter in "abc")
ROWS = [
    ("r1", "billing 0.9", "billing"),
    ("r2", "billing 0.9", "login"),
    ("r3", "login 0.5", "login"),
    ("r4", "login 0.49", "login"),
    ("r5", "shipping 0.3", "abstain"),
]


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    folder = tmp_path / "artifact"
    folder.mkdir()
    (folder / "labels.json").write_text(json.dumps(LABELS), encoding="utf-8")
    (folder / "model.onnx").write_text("artifact", encoding="utf-8")
    write_export_record(folder, record(Calibration(0.5, 20, 1, 0.05)))
    return folder


def record(abstention: Calibration | None) -> ExportRecord:
    return ExportRecord(
        task="sequence_classification",
        labels=LABELS,
        max_length=16,
        quantize="int8",
        base_model=f"sha256:{64 * '0'}",
        tokenizer_sha256=64 * "0",
        abstention=abstention,
    )


@pytest.fixture
def eval_set(tmp_path: Path) -> Path:
    folder = tmp_path / "eval_set"
    folder.mkdir()
    ids, texts, expected = zip(*ROWS, strict=True)
    table = pyarrow.table({"id": ids, "text": texts, "expected": expected})
    pyarrow.parquet.write_table(table, folder / "rows.parquet")
    (folder / "eval_set.json").write_text('{"name": "gold", "version": "v1", "rows": 5}', encoding="utf-8")
    return folder


def run(folder: Path, eval_set: Path, out: Path, **changes: Any) -> Facts:
    """Evaluate the artifact in `folder`; keyword arguments replace parameters."""
    out.mkdir()
    params = {
        "artifact": ARTIFACT,
        "eval_set": SET,
        "role": "task",
        "labels": list(LABELS),
        "evaluation": {"batch_size": 64},
    }
    return evaluate({"artifact": folder, "eval_set": eval_set}, params | changes, out, scorer=WordScorer())


def test_the_report_holds_what_was_measured(artifact: Path, eval_set: Path, tmp_path: Path) -> None:
    run(artifact, eval_set, tmp_path / "out")
    measured = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert measured["eval_set"] == {"digest": SET, "name": "gold", "version": "v1"}
    assert measured["scorer"] == {"name": "WordScorer", "version": "1", "runtime": None}
    assert measured["counts"] == {
        "n": 5,
        "correct": 3,
        "abstained": 2,
        "distinct_predictions": 3,
        "distinct_expected": 3,
    }
    assert measured["metrics"]["accuracy"] == 0.6
    assert math.isclose(measured["metrics"]["macro_f1"], (2 / 3 + 1 / 2 + 2 / 3) / 3)


def test_an_answer_under_the_threshold_is_an_abstention(artifact: Path, eval_set: Path, tmp_path: Path) -> None:
    run(artifact, eval_set, tmp_path / "out")
    answers = pyarrow.parquet.read_table(tmp_path / "out" / "answers.parquet").to_pydict()
    assert answers["predicted"] == ["billing", "billing", "login", "abstain", "abstain"]
    assert answers["id"] == [row_id for row_id, _, _ in ROWS]


def test_no_output_holds_a_text(artifact: Path, eval_set: Path, tmp_path: Path) -> None:
    facts = run(artifact, eval_set, tmp_path / "out")
    columns = pyarrow.parquet.read_schema(tmp_path / "out" / "answers.parquet").names
    assert columns == ["id", "expected", "predicted", "confidence"]
    written = "".join((tmp_path / "out" / name).read_text() for name in ("report.json", "confusion.json"))
    assert not [text for _, text, _ in ROWS if text in written + json.dumps(facts)]


def test_the_confusion_counts_every_row_once(artifact: Path, eval_set: Path, tmp_path: Path) -> None:
    run(artifact, eval_set, tmp_path / "out")
    counts = json.loads((tmp_path / "out" / "confusion.json").read_bytes())["counts"]
    assert {"expected": "login", "predicted": "billing", "count": 1} in counts
    assert sum(pair["count"] for pair in counts) == len(ROWS)


@pytest.mark.parametrize(("role", "metric"), [("task", "macro_f1"), ("regression", "macro_f1"), ("safety", "accuracy")])
def test_each_role_has_its_score(artifact: Path, eval_set: Path, tmp_path: Path, role: str, metric: str) -> None:
    measured = run(artifact, eval_set, tmp_path / "out", role=role)
    assert measured["score"] == measured["metrics"][metric]


def test_the_same_inputs_give_the_same_bytes(artifact: Path, eval_set: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "first", tmp_path / "second"]
    for out in outs:
        run(artifact, eval_set, out)
    first, second = ({file.name: file.read_bytes() for file in out.iterdir()} for out in outs)
    assert first == second


def test_an_artifact_that_answers_an_undeclared_label_is_refused(
    artifact: Path, eval_set: Path, tmp_path: Path
) -> None:
    with pytest.raises(LabelError, match="not declared"):
        run(artifact, eval_set, tmp_path / "out", labels=[*LABELS[1:], "another"])


def test_an_older_artifact_is_measured_on_labels_it_does_not_know(
    artifact: Path, eval_set: Path, tmp_path: Path
) -> None:
    same = run(artifact, eval_set, tmp_path / "same")
    grown = run(artifact, eval_set, tmp_path / "grown", labels=[*LABELS, "new"])
    assert grown["score"] == same["score"]


def test_an_artifact_that_was_never_calibrated_is_refused(artifact: Path, eval_set: Path, tmp_path: Path) -> None:
    write_export_record(artifact, record(None))
    with pytest.raises(ExportCheckError, match="no abstention threshold"):
        run(artifact, eval_set, tmp_path / "out")


def test_an_unknown_role_is_refused(artifact: Path, eval_set: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'tasks'"):
        run(artifact, eval_set, tmp_path / "out", role="tasks")


@pytest.mark.parametrize("name", ["rows.parquet", "eval_set.json"])
@pytest.mark.parametrize("content", [None, b"", b"[]"])
def test_an_eval_set_that_cannot_be_read_is_refused(
    artifact: Path, eval_set: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    (eval_set / name).unlink()
    if content is not None:
        (eval_set / name).write_bytes(content)
    with pytest.raises(EvalSetError):
        run(artifact, eval_set, tmp_path / "out")


@pytest.fixture
def evaluations(artifact: Path, eval_set: Path, tmp_path: Path) -> dict[str, Path]:
    folders = {}
    for side, digest in (("candidate", ARTIFACT), ("production", PRODUCTION)):
        for role in ROLES:
            folders[f"{side}_{role}"] = tmp_path / f"{side}_{role}"
            run(artifact, eval_set, folders[f"{side}_{role}"], role=role, artifact=digest)
    return folders


def joined(evaluations: dict[str, Path], out: Path, production: str | None = PRODUCTION) -> Facts:
    out.mkdir()
    return report(evaluations, {"candidate": ARTIFACT, "production": production}, out)


def test_the_gate_can_read_both_reports(evaluations: dict[str, Path], tmp_path: Path) -> None:
    facts = joined(evaluations, tmp_path / "out")
    for side, digest in (("candidate", ARTIFACT), ("production", PRODUCTION)):
        written = json.loads((tmp_path / "out" / f"{side}.json").read_bytes())
        assert report_problems(side, written) == []
        assert (written["artifact"], written["scorer"]) == (digest, "WordScorer/1")
        assert written["metrics"] == facts["metrics"][side]
        assert written["metrics"]["safety"] == written["details"]["safety"]["accuracy"] == 0.6


def test_without_production_only_the_candidate_is_reported(evaluations: dict[str, Path], tmp_path: Path) -> None:
    candidate = {name: folder for name, folder in evaluations.items() if name.startswith("candidate")}
    joined(candidate, tmp_path / "out", None)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["candidate.json"]


def test_an_evaluation_that_is_missing_or_not_asked_for_is_refused(
    evaluations: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(GateRecordError, match="production_task"):
        joined(evaluations, tmp_path / "extra", None)
    del evaluations["candidate_safety"]
    with pytest.raises(GateRecordError, match="candidate_safety"):
        joined(evaluations, tmp_path / "missing")


def test_an_evaluation_of_another_artifact_or_role_is_refused(evaluations: dict[str, Path], tmp_path: Path) -> None:
    swapped = evaluations | {"candidate_task": evaluations["production_task"]}
    with pytest.raises(GateRecordError, match="is needed"):
        joined(swapped, tmp_path / "artifact_swapped")
    swapped = evaluations | {"candidate_task": evaluations["candidate_safety"]}
    with pytest.raises(GateRecordError, match="is needed"):
        joined(swapped, tmp_path / "role_swapped")


def test_roles_scored_by_different_scorers_are_refused(evaluations: dict[str, Path], tmp_path: Path) -> None:
    path = evaluations["candidate_task"] / "report.json"
    path.write_text(path.read_text().replace('"version":"1"', '"version":"2"'))
    with pytest.raises(GateRecordError, match=r"WordScorer/1, WordScorer/2"):
        joined(evaluations, tmp_path / "out")
