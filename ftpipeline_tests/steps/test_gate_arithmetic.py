from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import InputError
from ftpipeline.steps.gate_arithmetic import difference, exact, noise_band, plain, thresholds
from ftpipeline_tests.steps.gate_examples import GATES

fractions = st.floats(0, 1)


@given(fractions, fractions)
def test_a_difference_is_never_rounded(a: float, b: float) -> None:
    gained = difference(a, b)
    assert Decimal(plain(gained)) == gained
    assert (gained == 0) == (a == b)
    assert (gained > 0) == (a > b)
    assert gained == difference(b, a).copy_negate()


@given(fractions)
def test_a_number_is_taken_as_the_decimal_that_people_read(value: float) -> None:
    assert float(exact(value)) == value
    assert str(exact(0.1)) == "0.1"


def test_decimals_are_written_as_people_write_them() -> None:
    assert [plain(difference(*pair)) for pair in ((0.9, 0.8), (0.7, 0.7), (0.00001, 0))] == ["0.1", "0", "0.00001"]


def test_thresholds_may_be_numbers_or_text() -> None:
    as_text = {name: str(value) for name, value in GATES.items()}
    assert thresholds(GATES) == thresholds(as_text)
    assert thresholds(GATES).safety == 0


@pytest.mark.parametrize("value", [None, True, "", "five", float("nan"), float("inf"), "NaN", -0.001, 1.5, [0.1]])
@pytest.mark.parametrize("key", sorted(GATES))
def test_a_threshold_that_is_no_fraction_is_wrong_input(key: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"gates.{key}"):
        thresholds({**GATES, key: value})


def test_missing_and_unknown_gates_are_named() -> None:
    gates = {**GATES, "task_min_gain": 0.005}
    del gates["safety_max_drop"]
    with pytest.raises(InputError, match=r"missing \['safety_max_drop'\], unknown \['task_min_gain'\]"):
        thresholds(gates)


def test_the_noise_band_has_the_spread_of_the_scores_and_the_bound_of_a_difference() -> None:
    band = noise_band([0.775, 0.8, 0.825])
    assert (band.spread, band.width) == (Decimal("0.05"), Decimal("0.103238"))
    assert noise_band([0.7, 0.7]).width == 0


@pytest.mark.parametrize("scores", [[], [0.8], [0.8, float("nan")], [0.8, 80.0], [0.8, None]])
def test_scores_that_show_no_spread_are_wrong_input(scores: Any) -> None:
    with pytest.raises(InputError, match="seed_scores"):
        noise_band(scores)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=12))
def test_the_width_covers_the_spread_of_two_and_shrinks_with_more_seeds_of_one_spread(points: list[int]) -> None:
    scores = [point / 1000 for point in points]
    band = noise_band(scores)
    assert (band.width == 0) == (band.spread == 0)
    assert noise_band([*scores, *scores]).width <= band.width + Decimal("0.000001")
    assert noise_band(scores[::-1]) == band
