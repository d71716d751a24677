"""Personal data is found by checksum and shape; what only looks like it stays."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.pii import scrub
from ftpipeline_tests.shared import shared

FIXTURE: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "pii_fixture.jsonl").read_text("utf-8").splitlines()
]

pieces = st.sampled_from(
    [
        "5",
        "0171 1234567",
        "01 99 00 43 21",
        "(0)171-5550155",
        " ",
        "-",
        "+",
        "+44 20 7946 0018",
        "a@b.example",
        "@",
        ".",
        "4111111111111111",
    ]
)


@given(st.one_of(st.text("0123456789 +-.()/@ab\n", max_size=80), st.lists(pieces, max_size=20).map("".join)))
def test_a_second_run_finds_nothing(text: str) -> None:
    scrubbed, _ = scrub(text)
    assert scrub(scrubbed) == (scrubbed, {})


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("write to first.last+tag@mail.eu.example.com.", "write to [EMAIL]."),
        ("Jürgen <jürgen@müller.example>", "Jürgen <[EMAIL]>"),
        ("a@b.example,c@d.example", "[EMAIL],[EMAIL]"),
        ("a@b.example4111111111111111-a@b.example.", "[EMAIL]."),
        ("Tel. +1 202 555 0196 | fax", "Tel. [PHONE] | fax"),
        ("Tel.312-555-0155", "Tel.[PHONE]"),
        ("call (415) 555-0133 or 312.555.0155", "call [PHONE] or [PHONE]"),
        ("030/901820, 0171 1234567, 0044 20 7946 0018", "[PHONE], [PHONE], [PHONE]"),
        ("01 99 00 43 21 or (0)171-5550155", "[PHONE] or [PHONE]"),
        ("after 5 +1 202 555 0130", "after 5 [PHONE]"),
        ("4111-1111-1111-1111", "[CARD]"),
        ("3782 822463 10005", "[CARD]"),
        ("card 4111 1111 1111 1111 20 times", "card [CARD] 20 times"),
        ("4111 1111 1111 1111 0171 1234567", "[CARD] [PHONE]"),
        ("DE89 3704 0044 0532 0130 00 PLEASE", "[IBAN] PLEASE"),
        ("gb82west12345698765432", "[IBAN]"),
        ("DE89370400440532013000 GB82WEST12345698765432", "[IBAN] [IBAN]"),
    ],
)
def test_personal_data_is_replaced_by_its_kind(text: str, scrubbed: str) -> None:
    assert scrub(text)[0] == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "order 10023456, tracking 2024 1130 0917",
        "timeouts were 250 300 1000 ms on host 10.12.113.254",
        "version 7.4.1, build 2026.10.05.1200",
        "ticket ref 4111111111111112",
        "invoice 1234567812345670",
        "DE88 3704 0044 0532 0130 00",
        "from 2026-10-05 to 2026-10-12, 10:30-11:45",
        "1.000.000,00 EUR at +3.5 %",
        "user@localhost, @mention, a@b",
        "[EMAIL] [PHONE] [CARD] [IBAN]",
    ],
)
def test_what_only_looks_like_personal_data_stays(text: str) -> None:
    assert scrub(text) == (text, {})


def test_every_kind_is_counted() -> None:
    text = "a@b.example 4111 1111 1111 1111 a@b.example +44 20 7946 0018 DE89 3704 0044 0532 0130 00"
    assert scrub(text)[1] == {"[EMAIL]": 2, "[CARD]": 1, "[PHONE]": 1, "[IBAN]": 1}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("run", ["a", "a.", "1", "1 ", "a@", "a@b.", "+1", "(4", "DE89", "0171 ", "-"])
def test_a_long_run_does_not_blow_up(run: str) -> None:
    text = run * (200_000 // len(run))
    assert len(scrub(text)[0]) <= len(text)


def test_recall_and_precision_on_the_labelled_texts() -> None:
    wanted = [(case, part) for case in FIXTURE for part in case["redact"]]
    found = [part for case, part in wanted if part not in scrub(case["text"])[0]]
    damaged = [part for case in FIXTURE for part in case["keep"] if part not in scrub(case["text"])[0]]
    assert len(wanted) == 36
    assert len(found) / len(wanted) >= 0.99
    assert len(found) / (len(found) + len(damaged)) >= 0.97


def test_the_kind_of_every_find_is_right() -> None:
    placeholders = {"email": "[EMAIL]", "phone": "[PHONE]", "card": "[CARD]", "iban": "[IBAN]"}
    for case in FIXTURE:
        scrubbed, kinds = scrub(case["text"])
        if case["redact"] and kinds:
            assert set(kinds) == {placeholders[case["kind"]]}, scrubbed


@pytest.mark.parametrize("case", FIXTURE, ids=lambda case: case["text"][:30])
def test_every_labelled_text_is_scrubbed_once(case: dict[str, Any]) -> None:
    once, _ = scrub(case["text"])
    assert scrub(once) == (once, {})


def test_the_shared_texts_keep_what_they_must_and_lose_what_they_must() -> None:
    for line in shared("cases", "b", "pii_cases.jsonl").read_bytes().splitlines():
        case = json.loads(line)
        scrubbed, _ = scrub(case["text"])
        assert not [part for part in case["must_redact"] if part in scrubbed]
        assert not [part for part in case["must_keep"] if part not in scrubbed]
