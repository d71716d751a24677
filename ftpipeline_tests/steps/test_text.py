"""Cleaning is a fixed point, and never eats the message."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ftpipeline.errors import PipelineFileError
from ftpipeline.steps.mail_phrases import LANGUAGES
from ftpipeline.steps.replies import MIN_SHARE, strip_reply
from ftpipeline.steps.text import clean, normalise, words
from ftpipeline_tests.shared import shared

PIECES = [
    "\n",
    "\n\n",
    " ",
    "> quoted",
    "My card is lost",
    "--",
    "-- \n",
    "________",
    "--- Original Message ---",
    "On Mon, 5 Oct 2026, Support <support@example.com> wrote:",
    "Fra: Support\nSendt: i dag\nTil: Kunde",
    "Sent from my phone",
    "Best regards,",
    "Thanks!",
    "Mira Sandvik",
    "+1 202 555 0196",
    "312-555-0155",
    "0171 1234567",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "a@b.example",
    "@",
    "5",
    "[PHONE]",
    "\u200b",
    "e\u0301",
    "\u0301",
    "\r\n",
    "\t",
    "🙂",
]
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


@given(texts)
@example("4111 1111 1111 1111 0171 1234567")
@example("x\nThanks\na\nb\n> q\n\n> q\n\nc\nBest regards,\nd")
def test_cleaning_a_cleaned_text_changes_nothing(text: str) -> None:
    cleaned = clean(text)
    again = clean(cleaned.text)
    assert again.text == cleaned.text
    assert (dict(again.pii), again.stripped) == ({}, False)


@given(texts)
def test_what_is_cut_off_leaves_most_of_the_message_or_nothing_but_a_device_signature(text: str) -> None:
    whole = normalise(text)
    left = strip_reply(whole).text
    visible, kept = (len("".join(part.split())) for part in (whole, left))
    only_device = all(line.startswith("Sent from my") for line in whole.split("\n") if line)
    assert kept >= MIN_SHARE * visible or (left == "" and only_device)


@given(texts)
def test_the_normal_form_is_visible_single_spaced_nfc(text: str) -> None:
    normal = normalise(text)
    assert normalise(normal) == normal
    assert unicodedata.is_normalized("NFC", normal)
    assert not any(piece in normal for piece in ("\u200b", "\ufeff", "\r", "\t", "  ", "\n\n\n", " \n", "\n "))


@given(texts)
def test_case_and_unicode_form_make_no_other_words(text: str) -> None:
    assert words(text)
    assert words(unicodedata.normalize("NFD", text)) == words(text)
    assert words(f"  {text}!") == words(text) or not any(character.isalnum() for character in text)


def test_joiners_that_spelling_and_emoji_need_stay() -> None:
    assert normalise("👩\u200d👧 \u0645\u06cc\u200c\u062e") == "👩\u200d👧 \u0645\u06cc\u200c\u062e"


def cases(name: str) -> list[dict[str, Any]]:
    lines = shared("cases", "b", name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_signatures_and_old_mails_are_cut_off() -> None:
    wrong = {case["id"]: clean(case["text"]).text for case in cases("signatures.jsonl")}
    assert wrong == {case["id"]: case["expected"] for case in cases("signatures.jsonl")}


def test_personal_data_goes_and_other_numbers_stay() -> None:
    for case in cases("pii_cases.jsonl"):
        cleaned = clean(case["text"]).text
        assert [secret for secret in case["must_redact"] if secret in cleaned] == [], case["id"]
        assert [text for text in case["must_keep"] if text not in cleaned] == [], case["id"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("My card is lost.\n\nBest regards,\nMira Sandvik\nmira@example.com", "My card is lost."),
        ("My card is lost.\n\nThanks\nMira", "My card is lost."),
        ("My card is lost.\n\nSent from my phone\nMira, 312-555-0155", "My card is lost."),
        ("It still fails.\n\nOn 5 Oct 2026, Support <s@example.com> wrote:\n> Did you try?", "It still fails."),
        (
            "On 5 Oct 2026, Support <s@example.com> wrote:\n> Did you try?\n\nYes, it still fails.",
            "Yes, it still fails.",
        ),
        ("It fails.\n\n----- Original Message -----\nFrom: Support\nHave you tried it?", "It fails."),
        ("It fails in v2 -- see below\nsecond line", None),
        ("Hello,\nThanks!\nThe transfer that I made on Monday has still not arrived at the other bank.", None),
        ("Thanks", None),
        ("", None),
    ],
)
def test_the_message_is_what_is_left(text: str, left: str | None) -> None:
    assert clean(text).text == (text if left is None else left)


def test_a_message_inside_its_own_quote_is_kept_whole() -> None:
    cleaned = clean("> the whole message stands in the quote\n> and must survive\nok")
    assert cleaned.text.startswith("> the whole message")
    assert (cleaned.kept_whole, cleaned.stripped) == (True, False)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_declared_language_cuts_its_own_quotes_and_the_others_stay(language: str) -> None:
    phrases = LANGUAGES[language]
    opens, wrote = phrases.opens.split("|")[0], phrases.wrote.split("|")[0].rstrip("?")
    text = f"A message of some length.\n{opens} 5.10.2026 Mira Lund {wrote}:\nwhat was said"
    assert clean(text, (language,)).text == "A message of some length."
    other = "pl" if language != "pl" else "en"
    assert clean(text, (other,)).text == text


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(PipelineFileError, match="holds 'xx'; use some of da, de"):
        clean("hello", ("xx",))
