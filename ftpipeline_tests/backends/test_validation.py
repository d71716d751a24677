import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.backends.validation import measure
from ftpipeline.errors import TrainingFailedError

LABELS = ("a", "b", "c")


@given(truth=st.lists(st.integers(0, 2), min_size=1))
def test_equal_logits_cost_the_entropy_of_the_uniform_answer(truth: list[int]) -> None:
    measured = measure(np.full((len(truth), 3), 7.0), np.array(truth), LABELS)
    assert measured["loss"] == pytest.approx(math.log(3))


@given(truth=st.lists(st.integers(0, 2), min_size=1))
def test_right_answers_measure_one_and_cost_nothing(truth: list[int]) -> None:
    logits = np.eye(3)[truth] * 1e4  # beyond what exp can hold
    assert measure(logits, np.array(truth), LABELS) == {"loss": 0.0, "accuracy": 1.0, "macro_f1": 1.0}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_logit_that_is_not_finite_fails_the_training(value: float) -> None:
    logits = np.zeros((4, 3))
    logits[2, 1] = value
    with pytest.raises(TrainingFailedError, match="1 of 4"):
        measure(logits, np.zeros(4, np.int64), LABELS)
