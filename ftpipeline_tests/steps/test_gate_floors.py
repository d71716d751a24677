"""Thresholds finer than one example or than the noise: a gain is refused before training, a drop is warned of."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import ThresholdError
from ftpipeline.steps.gate_arithmetic import noise_band, thresholds
from ftpipeline.steps.gate_floors import check_thresholds, coarse_thresholds
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.gate_examples import ROLES

GATES = {"task_min_gain_vs_prod": 0.1, "regression_max_drop": 0.1, "safety_max_drop": 0.1}
SEEDS = [0.775, 0.8, 0.825]


def check(rows: int = 40, seeds: list[float] | None = None, **gates: Any) -> list[str]:
    """Return the codes of what is warned of."""
    bands = {} if seeds is None else dict.fromkeys(ROLES, noise_band(seeds))
    limits = thresholds({**GATES, **gates})
    return [warning.code for warning in check_thresholds(limits, dict.fromkeys(ROLES, rows), bands)]


def test_the_case_of_forty_examples_is_refused_with_all_its_numbers() -> None:
    case = json.loads(shared("cases", "e", "gate_granularity.json").read_text())
    limits = thresholds({**GATES, "task_min_gain_vs_prod": case["task_min_gain_vs_prod"]})
    rows = dict.fromkeys(ROLES, case["n_task_examples"])
    bands = {"task": noise_band(case["seed_scores_same_manifest"])}
    with pytest.raises(ThresholdError) as refused:
        check_thresholds(limits, rows, bands)
    for number in ("0.005", "n = 40", str(case["one_example_step"]), "0.103238", "spread over 0.05"):
        assert number in str(refused.value)


def test_a_gain_below_one_example_is_refused_and_one_of_it_is_not() -> None:
    assert check(task_min_gain_vs_prod=0.025) == []
    with pytest.raises(ThresholdError, match=r"threshold 0\.0249 is below one example of n = 40 \(0\.025\)"):
        check(task_min_gain_vs_prod=0.0249)


def test_a_gain_below_the_noise_band_is_refused_and_one_of_it_is_not() -> None:
    assert check(seeds=SEEDS, task_min_gain_vs_prod=0.103238, regression_max_drop=0.2, safety_max_drop=0.2) == []
    with pytest.raises(ThresholdError, match=r"threshold 0\.103237 is below the noise band 0\.103238"):
        check(seeds=SEEDS, task_min_gain_vs_prod=0.103237)


def test_no_gain_and_no_drop_are_allowed_whatever_the_noise() -> None:
    nothing = {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 0.0, "safety_max_drop": 0.0}
    assert check(rows=1, seeds=SEEDS, **nothing) == []


def test_a_drop_between_nothing_and_its_floor_is_warned_of() -> None:
    assert check(regression_max_drop=0.02) == ["threshold_below_one_example"]
    both = check(seeds=SEEDS, task_min_gain_vs_prod=0.2, regression_max_drop=0.02, safety_max_drop=0.2)
    assert both == ["threshold_below_one_example", "threshold_below_noise_band"]


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_a_threshold_is_below_one_example_exactly_where_the_fraction_is(rows: int, points: int) -> None:
    limits = thresholds({**GATES, "task_min_gain_vs_prod": points / 10_000})
    found = coarse_thresholds(limits, {"task": rows, "regression": 10, "safety": 10}, {})
    assert bool(found) == (points * rows < 10_000)
