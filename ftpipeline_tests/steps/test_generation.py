"""An answer in a model's own words that means no label is wrong, and counted; the denominator is every row."""

import pytest

from ftpipeline.errors import ExportCheckError
from ftpipeline.steps.generation import generation_report

LABELS = ["billing", "login", "other"]


def test_unparsable_answers_are_wrong_and_counted() -> None:
    written = ["billing", "Queue: login.", "billing or login", "", "other"]
    report = generation_report(["billing", "login", "billing", "login", "abstain"], written, LABELS)
    assert report["counts"] == {"n": 5, "correct": 2, "unparsable": 2}
    assert report["unparsable_share"] == 2 / 5
    assert report["macro_f1"] == (2 / 3 + 2 / 3 + 0) / 3


def test_a_model_that_writes_nothing_is_no_causal_model() -> None:
    with pytest.raises(ExportCheckError, match="write nothing"):
        generation_report(["billing"], None, LABELS)
