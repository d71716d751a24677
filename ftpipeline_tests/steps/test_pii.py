"""Personal data is found by checksum and shape; what only looks like it stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.pii import scrub

pieces = st.sampled_from(
    ["5", "0171 1234567", " ", "-", "+", "+44 20 7946 0018", "a@b.example", "@", ".", "4111111111111111"]
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
