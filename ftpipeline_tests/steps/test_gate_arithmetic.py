from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import InputError
from ftpipeline.steps.gate_arithmetic import difference, exact, plain, seed_band, thresholds
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


def test_the_seed_band_is_the_spread_of_the_scores() -> None:
    assert seed_band([0.775, 0.8, 0.825]) == Decimal("0.05")
    assert seed_band([]) == 0
    with pytest.raises(InputError, match="seed_scores"):
        seed_band([0.8, float("nan")])
