import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import canonical_json, of_json
from ftpipeline.errors import CanonicalFormError, ChainError, InputError, LedgerError
from ftpipeline.ledger.chain import StoredEvent
from ftpipeline.ledger.events import Draft, Event, Kind, canonical_form, next_events, number
from ftpipeline_tests.ledger.chains import NOON, chain_of, changed
from ftpipeline_tests.ledger.world import metrics, opened, point

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53) + 1, 2**53 - 1)
values = st.recursive(
    st.none() | st.booleans() | numbers.filter(lambda value: abs(value) < 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(texts, values, max_size=4),
    st.integers(0, 2**40),
    st.floats(0, 1e6),
    st.sampled_from([None, "sha256:" + "0" * 64]),
)
def test_the_digest_is_that_of_the_canonical_form_of_all_fields(
    payload: dict[str, Any], step: int, epoch: float, prev: Any
) -> None:
    event = Event("job", 1, 7, prev, step, epoch, NOON, Kind.EVALUATION, payload)
    assert event.digest == of_json(event.document())
    stored = StoredEvent.of(event)
    assert stored.is_sound
    assert stored.event() == event


def test_the_form_of_an_event_never_changes() -> None:
    event = Event("job", 1, 1, None, 3, 0.5, NOON, Kind.METRICS, {"points": [point(3, number(math.nan))]})
    envelope = {name: value for name, value in event.document().items() if name != "payload"}
    assert canonical_form(envelope, event.payload_text) == canonical_json(event.document())
    assert event.digest == "sha256:a7704901f650fb90609d45168b5170d9a57defec425ae1860a872ff2a55f3889"


def test_events_follow_each_other_and_each_opening_begins_the_next_attempt() -> None:
    drafts = [
        Draft(Kind.JOB_OPENED, 0, 0, opened(holder="me")),
        metrics(1),
        Draft(Kind.JOB_OPENED, 0, 0, opened(holder="me")),
    ]
    first, second, third = next_events("job", 0, None, drafts, NOON)
    assert [event.attempt for event in (first, second, third)] == [1, 1, 2]
    assert [event.seq for event in (first, second, third)] == [0, 1, 2]
    assert [event.prev for event in (first, second, third)] == [None, first.digest, second.digest]
    assert next_events("job", 1, (0, first.digest), drafts[1:], NOON) == [second, third]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 2**53, {1: 2}, {"a": object()}, "\ud800"])
def test_what_json_lacks_is_refused(bad: Any) -> None:
    with pytest.raises(CanonicalFormError):
        next_events("job", 1, None, [Draft(Kind.EVALUATION, 0, 0, {"bad": bad})], NOON)


def test_a_number_that_is_not_finite_has_a_form() -> None:
    assert [number(value) for value in (1.5, math.nan, math.inf, -math.inf)] == [
        1.5,
        {"non_finite": "nan"},
        {"non_finite": "inf"},
        {"non_finite": "-inf"},
    ]


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.EVALUATION])
def test_a_payload_without_the_fields_of_its_kind_is_refused(kind: Kind) -> None:
    with pytest.raises(InputError, match=f"payload of {kind} event, .*: Field required"):
        Draft(kind, 0, 0, {})


def test_a_step_before_the_first_is_refused() -> None:
    with pytest.raises(InputError, match="steps count from 0"):
        Draft(Kind.EVALUATION, -1, 0, {})


@pytest.mark.parametrize("other", [{"schema": "ftpipeline.ledger_event/2"}, {"kind": "checkpoint_merged"}])
def test_an_event_of_a_newer_schema_is_refused_and_counted(other: dict[str, str]) -> None:
    event = changed(chain_of(1)[1], **other)
    assert event.is_sound
    with pytest.raises(LedgerError, match="1 events, from 1 on, are of a schema not known here") as caught:
        event.event()
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "payload", ["", "[]", "{}", "{", '{"points":[]}', '{"a":NaN}', '{"a":1,"a":2}', '{},"step":{}']
)
def test_a_payload_that_is_no_strict_json_object_is_no_event(payload: str) -> None:
    event = changed(chain_of(1)[1], payload=payload)
    with pytest.raises(ChainError) as caught:
        event.event()
    assert (caught.value.job_id, caught.value.state, caught.value.seq) == ("job", "unverifiable", 1)
