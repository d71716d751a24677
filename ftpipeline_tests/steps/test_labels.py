"""The label list is closed: a spelling means one label or none."""

import pytest

from ftpipeline.errors import LabelError, PipelineFileError
from ftpipeline.steps.labels import NORMAL_FORMS, LabelList, shown
from ftpipeline_tests.steps.data_steps import LABELS


@pytest.mark.parametrize("form", NORMAL_FORMS)
def test_every_label_means_itself(form: str) -> None:
    labels = LabelList(["Refund_not_showing_up", "atm_support", "why?"], form)
    assert [labels.match(label) for label in ("Refund_not_showing_up", " atm_support ", "why?")] == [
        "Refund_not_showing_up",
        "atm_support",
        "why?",
    ]


def test_only_blanks_at_the_ends_are_forgiven_by_default() -> None:
    labels = LabelList(LABELS)
    spellings = ["billing", "billing ", "Billing", "billing\u200b", "b\u0456lling", "", "bill"]
    assert [labels.match(spelling) for spelling in spellings] == ["billing", "billing", None, None, None, None, None]


def test_folding_joins_case_and_unicode_forms_and_no_look_alikes() -> None:
    labels = LabelList(["billing", "réclamation", "straße"], "nfkc_casefold")
    assert labels.match("\uff22illing") == "billing"
    assert labels.match("Re\u0301clamation") == "réclamation"
    assert labels.match("STRASSE") == "straße"
    assert labels.match("b\u0456lling") is None


@pytest.mark.parametrize(
    ("labels", "form"),
    [(["a", "a "], "strip"), (["A", "a"], "nfkc_casefold"), (["a", " "], "strip"), (["a", "abstain"], "strip")],
)
def test_a_list_that_is_not_one_is_refused(labels: list[str], form: str) -> None:
    with pytest.raises(LabelError):
        LabelList(labels, form)


def test_an_unknown_normal_form_is_refused() -> None:
    with pytest.raises(PipelineFileError, match="use one of strip, nfkc_casefold"):
        LabelList(LABELS, "lower")


def test_a_character_that_cannot_be_seen_is_shown() -> None:
    assert (shown("billing\u200b"), shown("réclamation")) == ("'billing\\u200b'", "réclamation")
