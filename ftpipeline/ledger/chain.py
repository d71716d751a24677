"""A job's chain as it is stored, and where it is broken (contracts C8 and C9).

Law: of events that were appended, any that is altered, dropped, moved or doubled afterwards is located: `check_chain`
raises with the place of the first event that does not fit. What is cut off the end is told by the job's head, and a
chain that was rewritten whole by a signed head, which names the digest that the writer knew.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from ftpipeline.digest import Digest, canonical_json, of_bytes, parse_json
from ftpipeline.errors import CanonicalFormError, ChainError, LedgerError
from ftpipeline.ledger.events import SCHEMA, Event, Kind, canonical_form
from ftpipeline.ledger.payloads import problem_of
from ftpipeline.receipts import read_canonical
from ftpipeline.schema import DigestText, Section

MISSING, FORKED, UNVERIFIABLE = "missing", "forked", "unverifiable"
"""What can be wrong with a chain, as `ChainError.state` says."""


@dataclass(frozen=True)
class Head:
    """A place in a chain: it stands for the event and for every earlier one.

    Attributes:
        seq: of the event.
        digest: of the event.
    """

    seq: int
    digest: Digest


@dataclass(frozen=True)
class StoredEvent:
    """An event as it is written, whatever wrote it.

    Attributes:
        schema: what the event is; only `events.SCHEMA` is known here.
        kind: as text, since a newer schema may have others.
        payload: canonical JSON.
        digest: what is stored as its digest.
    """

    job_id: str
    attempt: int
    seq: int
    prev: Digest | None
    step: int
    epoch: float
    time: str
    schema: str
    kind: str
    payload: str
    digest: Digest

    @classmethod
    def of(cls, event: Event) -> "StoredEvent":
        """Return what is written of an event; `event` reads it back."""
        place = (event.job_id, event.attempt, event.seq, event.prev)
        clock = (event.step, event.epoch, event.time)
        return cls(*place, *clock, SCHEMA, str(event.kind), event.payload_text, event.digest)

    @classmethod
    def from_line(cls, line: bytes, where: str) -> "StoredEvent":
        """Return the event in a line of an exported chain, with the digest that the line has.

        Args:
            line: what `line` returned.
            where: what the line is called in errors.

        Raises:
            VerificationError: it is no event in canonical form.
        """
        fields = read_canonical(line, _Line, where).model_dump(by_alias=True)
        payload = canonical_json(fields.pop("payload")).decode()
        return cls(**fields, payload=payload, digest=of_bytes(line))

    def line(self) -> bytes:
        """Return the event in canonical form; its digest is that of the line, if the event is sound."""
        return canonical_form(self._envelope(), self.payload)

    @property
    def head(self) -> Head:
        """The place of the event."""
        return Head(self.seq, self.digest)

    @property
    def is_sound(self) -> bool:
        """Whether the event has the digest that is stored with it, and its payload is an object."""
        try:
            is_object = isinstance(json.loads(self.payload), dict)
            return is_object and of_bytes(self.line()) == self.digest
        except (CanonicalFormError, ValueError, TypeError, RecursionError):
            return False

    def event(self) -> Event:
        """Return the event.

        Raises:
            LedgerError: it is of a schema or kind that is not known here.
            ChainError: its payload is not JSON, or not one of its kind.
        """
        if not is_known(self):
            raise unknown_schema(self.job_id, [self])
        kind, payload = Kind(self.kind), json_object(self.job_id, self.seq, self.payload)
        if problem := problem_of(kind, payload):
            raise ChainError(self.job_id, UNVERIFIABLE, self.seq, f"has no payload of its kind ({problem})")
        place = (self.job_id, self.attempt, self.seq, self.prev)
        return Event(*place, self.step, self.epoch, self.time, kind, payload)

    def _envelope(self) -> Mapping[str, Any]:
        return {
            "schema": self.schema,
            "job_id": self.job_id,
            "attempt": self.attempt,
            "seq": self.seq,
            "prev": self.prev,
            "step": self.step,
            "epoch": self.epoch,
            "time": self.time,
            "kind": self.kind,
        }


class _Line(Section):
    """The fields of an event on a line of an exported chain."""

    job_id: str
    attempt: int
    seq: int
    prev: DigestText | None
    step: int
    epoch: float
    time: str
    schema_: Annotated[str, Field(alias="schema")]
    kind: str
    payload: dict[str, Any]


def json_object(job_id: str, seq: int, text: str) -> dict[str, Any]:
    """Return what is stored as JSON at a place of a chain.

    Raises:
        ChainError: it is no strict JSON object.
    """
    try:
        value = parse_json(text.encode())
    except (CanonicalFormError, UnicodeEncodeError, AttributeError) as error:
        raise ChainError(job_id, UNVERIFIABLE, seq, f"is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise ChainError(job_id, UNVERIFIABLE, seq, "is no JSON object")
    return value


def unknown_schema(job_id: str, events: Iterable[StoredEvent]) -> LedgerError:
    """Return the error about events that this version cannot read."""
    unknown = list(events)
    kinds = ", ".join(sorted({f"{event.schema} {event.kind}" for event in unknown}))
    first = min(event.seq for event in unknown)
    return LedgerError(
        f"ledger of job {job_id}: {len(unknown)} events, from {first} on, are of a schema not known here ({kinds}); "
        "install a newer ftpipeline"
    )


def is_known(event: StoredEvent) -> bool:
    """Tell whether this version can read the event."""
    return event.schema == SCHEMA and event.kind in set(Kind)


def known_events(job_id: str, stored: Iterable[StoredEvent]) -> list[Event]:
    """Return stored events as events.

    Raises:
        LedgerError: some are of a newer schema; the error says how many.
        ChainError: one is not readable.
    """
    events = list(stored)
    if unknown := [event for event in events if not is_known(event)]:
        raise unknown_schema(job_id, unknown)
    return [event.event() for event in events]


def check_chain(job_id: str, events: Iterable[StoredEvent], trusted: Head | None = None) -> Head:
    """Check that events follow each other from a trusted place on, and return the place of the last one.

    Args:
        job_id: whose chain it is.
        events: in the order they are stored in; the first is the trusted one, if there is one.
        trusted: a place that was checked before; None when the events begin the chain.

    Raises:
        ChainError: no event is there, or one does not fit; the error says which.
    """
    head: Head | None = None
    for event in events:
        if head is None and trusted is not None:
            _check_trusted(job_id, event, trusted)
        else:
            _check_event(job_id, event, head)
        head = event.head
    if head is None:
        raise ChainError(job_id, MISSING, None if trusted is None else trusted.seq, "is not there")
    return head


def _check_trusted(job_id: str, event: StoredEvent, trusted: Head) -> None:
    if event.head != trusted:
        raise ChainError(job_id, FORKED, trusted.seq, f"was {trusted.digest} before")
    if event.job_id != job_id or not event.is_sound:
        raise ChainError(job_id, UNVERIFIABLE, event.seq, "does not have the digest it is stored under")


def _check_event(job_id: str, event: StoredEvent, head: Head | None) -> None:
    expected = 0 if head is None else head.seq + 1
    if event.job_id != job_id:
        raise ChainError(job_id, UNVERIFIABLE, expected, f"is one of job {event.job_id!r}")
    if event.seq != expected:
        state = MISSING if event.seq > expected else UNVERIFIABLE
        raise ChainError(job_id, state, expected, f"is not there, {event.seq} stands in its place")
    if not event.is_sound:
        raise ChainError(job_id, UNVERIFIABLE, event.seq, "does not have the digest it is stored under")
    if event.prev != (None if head is None else head.digest):
        raise ChainError(job_id, FORKED, event.seq, f"follows {event.prev}, which is not the event before it")
    if head is None and event.kind != Kind.JOB_OPENED:
        raise ChainError(job_id, UNVERIFIABLE, 0, f"is {event.kind}, where every chain begins with {Kind.JOB_OPENED}")
