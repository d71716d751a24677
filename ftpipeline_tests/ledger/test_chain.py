from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ftpipeline.errors import ChainError
from ftpipeline.ledger.chain import StoredEvent, check_chain
from ftpipeline_tests.ledger.chains import chain_of, changed
from ftpipeline_tests.store.rows import digest

CHAIN = chain_of(6)
PLACES = st.integers(0, len(CHAIN) - 1)
LATER = st.integers(1, len(CHAIN) - 1)


def broken(events: list[StoredEvent], **rest: Any) -> tuple[str, int | None]:
    """Return state and place of what is wrong."""
    with pytest.raises(ChainError) as caught:
        check_chain("job", events, **rest)
    assert caught.value.job_id == "job"
    return caught.value.state, caught.value.seq


@given(st.integers(0, 8))
def test_what_was_appended_verifies_whole_and_from_any_place_on(points: int) -> None:
    events = chain_of(points)
    assert check_chain("job", events) == events[-1].head
    for place in range(len(events)):
        assert check_chain("job", events[place:], trusted=events[place].head) == events[-1].head


def test_no_event_at_all_is_a_missing_chain() -> None:
    assert broken([]) == ("missing", None)
    assert broken([], trusted=CHAIN[3].head) == ("missing", 3)


@given(PLACES, st.sampled_from(sorted(asdict(CHAIN[0]))), st.data())
def test_any_changed_character_or_number_is_located(place: int, field: str, data: st.DataObject) -> None:
    old = getattr(CHAIN[place], field)
    assume(old is not None)
    if isinstance(old, str):
        at = data.draw(st.integers(0, len(old) - 1))
        new: Any = old[:at] + data.draw(st.characters(codec="utf-8")) + old[at + 1 :]
    else:
        new = data.draw(st.integers(-100, 100))
    assume(new != old)
    state, seq = broken([*CHAIN[:place], replace(CHAIN[place], **{field: new}), *CHAIN[place + 1 :]])
    assert seq == place
    assert state == "unverifiable" or field in ("seq", "prev")


@given(PLACES, st.integers(0, 7), st.data())
def test_any_flipped_bit_of_a_payload_is_located(place: int, bit: int, data: st.DataObject) -> None:
    payload = bytearray(CHAIN[place].payload.encode())
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at] ^= 1 << bit
    event = replace(CHAIN[place], payload=payload.decode(errors="surrogateescape"))
    assert broken([*CHAIN[:place], event, *CHAIN[place + 1 :]]) == ("unverifiable", place)


@given(st.integers(0, len(CHAIN) - 2))
def test_a_dropped_event_is_located(place: int) -> None:
    assert broken([*CHAIN[:place], *CHAIN[place + 1 :]]) == ("missing", place)


@given(PLACES)
def test_a_doubled_event_is_located(place: int) -> None:
    assert broken([*CHAIN[: place + 1], *CHAIN[place:]]) == ("unverifiable", place + 1)


@given(PLACES, PLACES)
def test_two_events_in_each_others_place_are_located(one: int, other: int) -> None:
    assume(one < other)
    events = list(CHAIN)
    events[one], events[other] = events[other], events[one]
    assert broken(events) == ("missing", one)


@given(LATER)
def test_a_chain_that_goes_on_from_another_past_is_forked(place: int) -> None:
    another = chain_of(6, time="2026-11-02T13:00:00.000000+00:00")
    assert broken([*another[:place], *CHAIN[place:]]) == ("forked", place)
    assert broken(another[place:], trusted=CHAIN[place].head) == ("forked", place)


@given(st.integers(0, len(CHAIN) - 2))
def test_an_event_that_was_forged_with_a_digest_that_fits_forks_the_chain_after_it(place: int) -> None:
    forged = changed(CHAIN[place], time="2020-01-01T00:00:00.000000+00:00")
    assert broken([*CHAIN[:place], forged, *CHAIN[place + 1 :]]) == ("forked", place + 1)


def test_an_event_of_another_job_is_located() -> None:
    assert broken([*CHAIN[:2], *chain_of(6, "other")[2:]]) == ("unverifiable", 2)


def test_a_chain_begins_with_an_opening() -> None:
    headless = changed(CHAIN[1], seq=0, prev=None)
    assert broken([headless]) == ("unverifiable", 0)


def test_a_trusted_event_that_was_altered_since_is_located() -> None:
    altered = replace(CHAIN[3], step=99)
    assert broken([altered, *CHAIN[4:]], trusted=CHAIN[3].head) == ("unverifiable", 3)
    assert broken(CHAIN[4:], trusted=CHAIN[3].head) == ("forked", 3)
    assert digest("x") not in {event.digest for event in CHAIN}
