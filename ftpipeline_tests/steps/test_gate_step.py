import json
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.digest import canonical_json
from ftpipeline.errors import DigestError, GateRecordError
from ftpipeline.steps.gate import gate
from ftpipeline_tests.steps.gate_examples import (
    CANDIDATE,
    GATES,
    MANIFEST,
    PRODUCTION,
    answers_of,
    expected_of,
    measured,
    paired,
    report,
)

ROWS, RIGHT, BETTER = 1000, 700, 900


class Case:
    """A report folder, and the gate run on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.params: dict[str, Any] = {
            "gates": GATES,
            "manifest": MANIFEST,
            "candidate": CANDIDATE,
            "production": {"digest": PRODUCTION, "generation": 3},
            "noise_band": None,
        }
        self.answered(BETTER)

    def answered(self, right: int) -> None:
        """Write the reports and answers of a candidate that is right on so many rows."""
        expected = expected_of(ROWS)
        candidate, production = answers_of(ROWS, right), answers_of(ROWS, RIGHT)
        self.write("candidate", measured(CANDIDATE, expected, candidate))
        self.write("production", measured(PRODUCTION, expected, production))
        self.write("pairs", {role: p.to_json() for role, p in paired(expected, candidate, production).items()})

    def write(self, side: str, content: object) -> None:
        (self.folder / f"{side}.json").write_text(json.dumps(content))

    def run(self, out: str = "out") -> dict[str, Any]:
        target = self.folder / out
        target.mkdir()
        facts = gate({"report": self.folder}, self.params, target)
        record = json.loads((target / "gate.json").read_bytes(), parse_constant=pytest.fail)
        assert {name: record[name] for name in facts} == facts
        assert (target / "gate.json").read_bytes() == canonical_json(record)
        return dict(record)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_the_record_is_bound_to_all_that_it_speaks_about(case: Case) -> None:
    record = case.run()
    assert record["type"] == "ftpipeline/gate/v1"
    assert record["verdict"] == "pass"
    assert (record["candidate"], record["manifest"]) == (CANDIDATE, MANIFEST)
    assert record["production"] == {"digest": PRODUCTION, "generation": 3}
    assert record["eval_sets"] == report(CANDIDATE)["eval_sets"]
    assert (record["scorer"], record["gates"]) == ("int8-onnx/1", GATES)
    assert record["differences"]["safety"] == "0.2"
    assert record["intervals"]["safety"]["low"] < 0.2 < record["intervals"]["safety"]["high"]
    assert (record["band"], record["noise_band"]) == ("unmeasured", None)
    assert record["metrics"]["production"]["safety"] == RIGHT / ROWS


def test_the_same_reports_give_the_same_bytes(case: Case) -> None:
    case.run("one")
    case.run("two")
    assert (case.folder / "one/gate.json").read_bytes() == (case.folder / "two/gate.json").read_bytes()


def test_a_failed_gate_is_written_down_and_not_raised(case: Case) -> None:
    case.answered(RIGHT - 100)
    record = case.run()
    assert record["verdict"] == "fail"
    codes = [reason["code"] for reason in record["reasons"]]
    assert codes == ["task_gain_below_threshold", "regression_drop", "safety_drop"]


def test_a_gain_that_another_draw_of_rows_would_undo_is_inconclusive(case: Case) -> None:
    case.answered(RIGHT + 2)
    case.params["gates"] = {**GATES, "task_min_gain_vs_prod": 0.001}
    record = case.run()
    assert record["verdict"] == "inconclusive"
    assert [reason["code"] for reason in record["reasons"]] == ["gain_within_interval"]


def test_the_noise_band_is_in_the_record_with_its_tree(case: Case) -> None:
    scores = {"task": [0.5, 0.7, 0.9], "regression": [0.7, 0.7], "safety": [0.6, 0.61]}
    case.params["noise_band"] = {"tree": MANIFEST, "seed_scores": scores}
    record = case.run()
    assert record["verdict"] == "inconclusive"
    assert record["noise_band"] == MANIFEST
    assert record["band"]["task"] == {"spread": "0.4", "width": "0.825901"}
    assert record["band"]["regression"] == {"spread": "0", "width": "0"}


@pytest.mark.parametrize("change", [{"task": 0.95}, {"regression": 0.95}, {"safety": 0.95}])
def test_an_edited_score_does_not_follow_from_the_answers(case: Case, change: dict[str, float]) -> None:
    edited = json.loads((case.folder / "candidate.json").read_text())
    edited["metrics"].update(change)
    case.write("candidate", edited)
    record = case.run()
    assert record["verdict"] == "refused"
    assert [reason["code"] for reason in record["reasons"]] == ["answers_mismatch"]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"task": []}', '{"task": [{"expected": "a"}]}', '{"task": 1}'])
def test_answers_that_cannot_be_read_pass_nothing(case: Case, text: str | None) -> None:
    if text is None:
        (case.folder / "pairs.json").unlink()
    else:
        (case.folder / "pairs.json").write_text(text)
    if text == "{}":
        assert [reason["code"] for reason in case.run()["reasons"]] == 3 * ["answers_missing"]
    else:
        with pytest.raises(GateRecordError, match=r"answers|pairs\.json"):
            case.run()


def test_a_nan_is_refused_and_stays_visible_in_strict_json(case: Case) -> None:
    case.write("candidate", report(CANDIDATE, task=float("nan")))
    record = case.run()
    assert record["verdict"] == "refused"
    assert record["metrics"]["candidate"]["task"] == {"non_finite": "nan"}


def test_without_production_it_is_a_first_release(case: Case) -> None:
    (case.folder / "production.json").unlink()
    case.params["production"] = {"digest": None, "generation": 0}
    record = case.run()
    assert record["verdict"] == "first_release"
    assert record["metrics"]["production"] is None


def test_pinned_production_that_was_not_evaluated_is_refused(case: Case) -> None:
    (case.folder / "production.json").unlink()
    record = case.run()
    assert record["verdict"] == "refused"
    assert [reason["code"] for reason in record["reasons"]] == ["production_report_missing"]


def test_the_pinned_artifact_itself_needs_no_second_report(case: Case) -> None:
    (case.folder / "production.json").unlink()
    case.params["production"] = {"digest": CANDIDATE, "generation": 3}
    assert case.run()["verdict"] == "already_production"


def test_a_production_report_without_a_pin_is_refused(case: Case) -> None:
    case.params["production"] = {"digest": None, "generation": 0}
    with pytest.raises(GateRecordError, match="no production is pinned"):
        case.run()


@pytest.mark.parametrize("side", ["candidate", "production"])
def test_a_report_about_another_artifact_is_refused(case: Case, side: str) -> None:
    case.write(side, report(MANIFEST))
    with pytest.raises(GateRecordError, match=rf"{side}\.json is about {MANIFEST}"):
        case.run()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\xff"])
def test_a_report_that_cannot_be_read_is_refused(case: Case, text: str) -> None:
    (case.folder / "candidate.json").write_text(text, encoding="latin-1")
    with pytest.raises(GateRecordError, match=r"candidate\.json"):
        case.run()


@pytest.mark.parametrize("name", ["manifest", "candidate"])
def test_a_parameter_that_is_no_digest_is_wrong_input(case: Case, name: str) -> None:
    case.params[name] = "latest"
    with pytest.raises(DigestError):
        case.run()
