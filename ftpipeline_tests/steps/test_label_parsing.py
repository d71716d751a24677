"""A model's own words mean one label of the closed list, or nothing; nothing is guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import LabelError
from ftpipeline.steps.label_parsing import LabelParser
from ftpipeline_tests.shared import shared

LABELS = ("billing", "billing_refund", "login", "not_login", "other", "C++ (errors)", "réclamation")
PARSER = LabelParser(LABELS)
labels = st.sampled_from(LABELS)


def test_the_reported_answers_are_read_as_expected() -> None:
    parser = LabelParser(json.loads(shared("cases", "e", "label_set.json").read_text("utf-8")))
    cases = [json.loads(line) for line in shared("cases", "e", "label_parsing.jsonl").read_text("utf-8").splitlines()]
    assert cases
    assert [parser.parse(case["raw"]) for case in cases] == [case["expected_pred"] for case in cases]


@given(
    labels, st.sampled_from(["", " ", '"', "Queue: ", "The answer is ", "**"]), st.sampled_from(["", ".", "\n", "</s>"])
)
def test_a_label_means_itself_whatever_stands_around_it(label: str, before: str, after: str) -> None:
    assert PARSER.parse(f"{before}{label}{after}") == label
    assert PARSER.parse(f"{before}{label.upper()}{after}") == label


@given(labels, labels)
def test_two_labels_mean_nothing(first: str, second: str) -> None:
    expected = first if first == second else None
    assert PARSER.parse(f"{first}, {second}") == expected


@given(st.text())
def test_an_answer_is_a_label_or_nothing(answer: str) -> None:
    assert PARSER.parse(answer) in (None, *LABELS)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("billing refund", "billing_refund"),
        ("Billing-Refund", "billing_refund"),
        ("not login", "not_login"),
        ("billing billing", "billing"),
        ("REC\u0301LAMATION", None),
        ("RE\u0301CLAMATION", "réclamation"),
        ("billings", None),
        ("rebilling", None),
        ("refund", None),
        ("this is not a login problem", None),
        ("it isn't billing", None),
        ("I do not know", None),
        ("<|billing|>", None),
    ],
)
def test_only_whole_labels_that_nothing_denies_count(answer: str, label: str | None) -> None:
    assert PARSER.parse(answer) == label


@pytest.mark.parametrize("pair", [("a_b", "a b"), ("Billing", "billing"), ("a-b", "A_B")])
def test_labels_that_no_answer_can_tell_apart_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(LabelError, match="are one in an answer"):
        LabelParser(pair)


@pytest.mark.parametrize("label", ["?!", "__"])
def test_a_label_without_a_letter_is_refused(label: str) -> None:
    with pytest.raises(LabelError, match="no letter or digit"):
        LabelParser(["billing", label])
