"""The abstention threshold is the largest one that keeps abstentions within the allowed share."""

import math
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import EmptyResultError, ExportCheckError, PipelineFileError
from ftpipeline.steps.calibrate import calibrate

probabilities = st.floats(0.0, 1.0)
confidences = st.lists(probabilities, min_size=1, max_size=60)
shares = st.integers(0, 100).map(lambda percent: percent / 100)


def below(values: list[float], threshold: float) -> int:
    return sum(value < threshold for value in values)


@given(confidences, shares)
def test_no_more_rows_abstain_than_allowed(values: list[float], share: float) -> None:
    calibration = calibrate(values, share)
    allowed = math.floor(Decimal(str(share)) * len(values))
    assert calibration.abstained == below(values, calibration.threshold) <= allowed
    assert calibration.n == len(values)


@given(confidences, shares)
def test_every_larger_threshold_breaks_the_limit(values: list[float], share: float) -> None:
    threshold = calibrate(values, share).threshold
    allowed = math.floor(Decimal(str(share)) * len(values))
    assert threshold == 1.0 or below(values, math.nextafter(threshold, 2.0)) > allowed


@given(confidences, shares, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(values: list[float], share: float, random: Random) -> None:
    shuffled = sorted(values, key=lambda _: random.random())
    assert calibrate(shuffled, share) == calibrate(values, share)


def test_rows_at_the_threshold_are_answered() -> None:
    assert calibrate([0.5, 0.5, 0.5, 0.9], 0.25).abstained == 0


def test_a_share_is_read_as_the_decimal_it_is_written_as() -> None:
    values = [row / 100 for row in range(100)]
    assert calibrate(values, 0.29).abstained == 29  # 0.29 * 100 is 28.999999999999996 in binary


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1])
def test_a_confidence_that_is_no_probability_is_refused(value: float) -> None:
    with pytest.raises(ExportCheckError, match="no probability"):
        calibrate([0.5, value, 0.7], 0.05)


@pytest.mark.parametrize("share", [math.nan, -0.01, 1.01])
def test_a_limit_that_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(PipelineFileError, match="max_abstain"):
        calibrate([0.5], share)


def test_an_empty_validation_is_refused() -> None:
    with pytest.raises(EmptyResultError):
        calibrate([], 0.05)
