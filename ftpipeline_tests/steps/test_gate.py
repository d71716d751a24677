from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import of_bytes
from ftpipeline.records import Verdict
from ftpipeline.steps.gate_decision import GateDecision, decide
from ftpipeline_tests.steps.gate_examples import (
    CANDIDATE,
    COUNTS,
    GATES,
    PRODUCTION,
    answers_of,
    expected_of,
    measured,
    paired,
    report,
)

GRID = 1000


def codes(decision: GateDecision) -> list[str]:
    return [reason.code for reason in decision.reasons]


def gated(candidate: dict[str, Any], production: dict[str, Any] | None = None) -> GateDecision:
    return decide(candidate, production or report(PRODUCTION), GATES)


@pytest.mark.parametrize("threshold", [1, 5, 10, 333])
def test_every_gain_on_the_grid_that_equals_its_threshold_passes(threshold: int) -> None:
    gates = {**GATES, "task_min_gain_vs_prod": threshold / GRID}
    wrong = []
    for low in range(1, GRID - threshold + 1):  # from 1: a production that scores zero is refused, not compared
        candidate = report(CANDIDATE, task=(low + threshold) / GRID)
        if decide(candidate, report(PRODUCTION, task=low / GRID), gates).verdict != Verdict.PASS:
            wrong.append(low)
    assert wrong == []


@pytest.mark.parametrize("role", ["regression", "safety"])
@pytest.mark.parametrize("threshold", [1, 5, 10, 333])
def test_every_drop_on_the_grid_that_equals_its_threshold_passes(role: str, threshold: int) -> None:
    gates = {**GATES, "task_min_gain_vs_prod": 0, f"{role}_max_drop": threshold / GRID}
    wrong = []
    for high in range(threshold, GRID + 1):
        candidate = report(CANDIDATE, **{role: (high - threshold) / GRID})
        production = report(PRODUCTION, **{role: high / GRID})
        if decide(candidate, production, gates).verdict != Verdict.PASS:
            wrong.append(high)
    assert wrong == []


@pytest.mark.parametrize(
    ("prod", "cand", "threshold", "kind", "expected"),
    [
        (0.800, 0.805, "0.005", "gain", "pass"),
        (0.810, 0.815, "0.005", "gain", "pass"),
        (0.685, 0.690, "0.005", "gain", "pass"),
        (0.800, 0.8049, "0.005", "gain", "fail"),
        (0.82, 0.81, "0.01", "drop", "pass"),
        (0.71, 0.70, "0.01", "drop", "pass"),
        (0.95, 0.9399, "0.01", "drop", "fail"),
        (0.99, 0.9899999999999999, "0", "drop", "fail"),
    ],
)
def test_thresholds_are_inclusive_in_decimal(
    prod: float, cand: float, threshold: str, kind: str, expected: str
) -> None:
    if kind == "gain":
        gates, role = {**GATES, "task_min_gain_vs_prod": threshold}, "task"
    else:
        gates, role = {**GATES, "task_min_gain_vs_prod": 0, "regression_max_drop": threshold}, "regression"
    decision = decide(report(CANDIDATE, **{role: cand}), report(PRODUCTION, **{role: prod}), gates)
    assert decision.verdict == expected


def test_all_failing_reasons_are_listed() -> None:
    decision = gated(report(CANDIDATE, task=0.5, regression=0.5, safety=0.5))
    assert decision.verdict == Verdict.FAIL
    assert codes(decision) == ["task_gain_below_threshold", "regression_drop", "safety_drop"]
    assert decision.differences == {"task": "-0.3", "regression": "-0.2", "safety": "-0.49"}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (float("nan"), "metric_not_finite"),
        (float("inf"), "metric_not_finite"),
        (None, "metric_missing"),
        (82.0, "metric_out_of_range"),
        (-0.1, "metric_out_of_range"),
        (10**400, "metric_out_of_range"),
        ("0.82", "metric_not_a_number"),
        (True, "metric_not_a_number"),
    ],
)
@pytest.mark.parametrize("role", ["task", "regression", "safety"])
def test_what_is_not_a_measured_fraction_is_refused_on_either_side(role: str, value: Any, code: str) -> None:
    broken, whole = report(CANDIDATE, **{role: value}), report(PRODUCTION)
    for candidate, production in ((broken, whole), (broken, None), (whole, {**broken, "artifact": of_bytes(b"other")})):
        decision = decide(candidate, production, GATES)
        assert (decision.verdict, codes(decision)) == (Verdict.REFUSED, [code])


@pytest.mark.parametrize("field", ["artifact", "eval_sets", "scorer", "metrics", "counts"])
def test_a_report_without_a_field_is_refused(field: str) -> None:
    candidate = report(CANDIDATE)
    del candidate[field]
    assert gated(candidate).verdict == Verdict.REFUSED
    assert codes(gated(candidate)) == [f"{field}_missing"]


@pytest.mark.parametrize("field", ["eval_sets", "metrics", "counts"])
def test_a_role_that_is_missing_or_unknown_is_refused(field: str) -> None:
    candidate = report(CANDIDATE)
    candidate[field]["style"] = candidate[field].pop("safety")
    assert gated(candidate).verdict == Verdict.REFUSED
    assert len(codes(gated(candidate))) == 2
    assert f"{field}_unknown" in codes(gated(candidate))


@pytest.mark.parametrize("name", sorted(COUNTS))
@pytest.mark.parametrize("value", [None, -1, 1.5, True, 1001, "n"])
def test_counts_that_are_not_counts_are_refused(name: str, value: Any) -> None:
    candidate = report(CANDIDATE)
    candidate["counts"]["task"][name] = value
    assert gated(candidate).verdict == Verdict.REFUSED


def test_scores_of_different_sets_or_scorers_are_not_compared() -> None:
    candidate = report(CANDIDATE, task=0.9)
    candidate["eval_sets"]["task"] = of_bytes(b"tickets-gold/v12")
    candidate["scorer"] = "v7"
    assert gated(candidate).verdict == Verdict.REFUSED
    assert codes(gated(candidate)) == ["eval_set_mismatch", "scorer_mismatch"]


@pytest.mark.parametrize("scored", [{"metrics": 0.0}, {"distinct_predictions": 1}])
def test_a_set_that_production_cannot_answer_is_uninformative(scored: dict[str, Any]) -> None:
    production = report(PRODUCTION)
    production["metrics"]["task"] = scored.get("metrics", 0.3)
    production["counts"]["task"]["distinct_predictions"] = scored.get("distinct_predictions", 40)
    decision = gated(report(CANDIDATE), production)
    assert (decision.verdict, codes(decision)) == (Verdict.REFUSED, ["set_uninformative"])
    candidate = report(CANDIDATE)
    for side in (candidate, production):
        side["counts"]["task"]["distinct_expected"] = 1  # all out of scope: one answer is the right one
    assert gated(candidate, production).verdict == Verdict.PASS


def test_a_first_release_needs_a_whole_report_and_an_informative_set() -> None:
    candidate = report(CANDIDATE)
    assert decide(candidate, None, GATES) == GateDecision(Verdict.FIRST_RELEASE)
    candidate["counts"]["safety"]["distinct_predictions"] = 1
    assert codes(decide(candidate, None, GATES)) == ["set_uninformative"]


def test_the_artifact_in_production_is_not_gated_against_itself() -> None:
    assert gated(report(PRODUCTION)) == GateDecision(Verdict.ALREADY_PRODUCTION)


def test_a_threshold_finer_than_one_example_is_warned_of() -> None:
    candidate, production = report(CANDIDATE, task=0.825), report(PRODUCTION)
    for side in (candidate, production):
        side["counts"]["task"] = {**COUNTS, "n": 40, "correct": 32}
    decision = gated(candidate, production)
    assert decision.verdict == Verdict.PASS
    assert [warning.code for warning in decision.warnings] == ["threshold_below_one_example"]


def test_a_gain_within_the_noise_band_is_inconclusive_and_one_at_it_passes() -> None:
    seeds = {"task": [0.78, 0.8, 0.82]}  # three seeds, a deviation of 0.02: the band is 0.082591 wide
    inside = decide(report(CANDIDATE, task=0.88259), report(PRODUCTION, task=0.8), GATES, seed_scores=seeds)
    at_the_band = decide(report(CANDIDATE, task=0.882591), report(PRODUCTION, task=0.8), GATES, seed_scores=seeds)
    assert (inside.verdict, codes(inside)) == (Verdict.INCONCLUSIVE, ["gain_within_noise_band"])
    assert at_the_band.verdict == Verdict.PASS


def test_who_asks_for_no_gain_is_not_asked_for_more_than_noise() -> None:
    gates = {**GATES, "task_min_gain_vs_prod": 0.0}
    seeds = {"task": [0.78, 0.8, 0.82]}
    assert decide(report(CANDIDATE), report(PRODUCTION), gates, seed_scores=seeds).verdict == Verdict.PASS
    worse = decide(report(CANDIDATE, task=0.799), report(PRODUCTION), gates, seed_scores=seeds)
    assert worse.verdict == Verdict.FAIL


@pytest.mark.parametrize(
    ("field", "code"),
    [("averaging", "averaging_mismatch"), ("classes", "classes_mismatch"), ("counts", "classes_mismatch")],
)
def test_means_over_other_classes_or_by_another_rule_are_not_compared(field: str, code: str) -> None:
    candidate = report(CANDIDATE, task=0.9)
    if field == "counts":
        candidate["counts"]["task"]["distinct_expected"] = 39
    else:
        candidate[field] = {"averaging": "micro", "classes": {"task": ["billing"]}}[field]
    decision = gated(candidate)
    assert decision.verdict == Verdict.REFUSED
    assert set(codes(decision)) == {code}


def test_a_report_that_does_not_follow_from_its_answers_is_refused() -> None:
    expected, right, wrong = expected_of(90), answers_of(90, 90), answers_of(90, 60)
    candidate, production = measured(CANDIDATE, expected, right), measured(PRODUCTION, expected, wrong)
    answers = paired(expected, right, wrong)
    gates = {**GATES, "task_min_gain_vs_prod": 0.1}
    assert decide(candidate, production, gates, answers=answers).verdict == Verdict.PASS
    swapped = decide(candidate, production, gates, answers=paired(expected, wrong, right))
    assert (swapped.verdict, set(codes(swapped))) == (Verdict.REFUSED, {"answers_mismatch"})
    assert codes(decide(candidate, production, gates, answers={"task": answers["task"]})) == 2 * ["answers_missing"]


scores = st.integers(1, GRID).map(lambda points: points / GRID)


@given(scores, scores, scores, scores)
def test_a_better_candidate_never_gets_a_worse_verdict(
    task: float, better: float, regression: float, prod: float
) -> None:
    low, high = sorted((task, better))
    production = report(PRODUCTION, task=prod)
    worse = gated(report(CANDIDATE, task=low, regression=regression), production)
    best = gated(report(CANDIDATE, task=high, regression=regression), production)
    assert set(codes(best)) <= set(codes(worse))
