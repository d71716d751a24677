"""Events of training jobs, each of which names the hash of the one before it (contract C8).

Law: the digest of an event is that of the RFC 8785 form of all its fields, so that one digest stands for the event and
for every earlier one. A job's clock is (attempt, step); epoch and time are descriptive, and clocks of two jobs are
never compared.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ftpipeline.digest import Digest, canonical_json, of_bytes
from ftpipeline.errors import InputError
from ftpipeline.ledger.payloads import CloseReason, Kind, Use, problem_of

__all__ = ["SCHEMA", "CloseReason", "Draft", "Event", "Kind", "Use", "canonical_form", "next_events", "number"]

SCHEMA = "ftpipeline.ledger_event/1"
"""What the events of this version are."""

_PAYLOAD = "payload"
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")  # becomes a file name in an exported bundle


@dataclass(frozen=True)
class Draft:
    """What a writer says; the ledger adds the place in the chain.

    Attributes:
        kind: what happened.
        step: optimizer step of the job.
        epoch: descriptive.
        payload: JSON values with the fields of the kind; a float that may not be finite is written by `number`.

    Raises:
        InputError: the payload is not one of its kind, or the step is negative.
    """

    kind: Kind
    step: int
    epoch: float
    payload: Mapping[str, Any]

    def __post_init__(self) -> None:
        if problem := problem_of(self.kind, self.payload):
            raise InputError(f"payload of {self.kind} event, {problem}; give what docs/formats/ledger.md says")
        if self.step < 0:
            raise InputError(f"{self.kind} event at step {self.step}; steps count from 0")


@dataclass(frozen=True)
class Event:
    """One event.

    Attributes:
        job_id: whose it is.
        attempt: which launch of the job, from 1.
        seq: place in the job's chain, from 0.
        prev: digest of the event before it; None for the first.
        step: optimizer step of the job.
        epoch: descriptive.
        time: UTC, ISO 8601; descriptive.
        kind: what happened.
        payload: what the kind says.
    """

    job_id: str
    attempt: int
    seq: int
    prev: Digest | None
    step: int
    epoch: float
    time: str
    kind: Kind
    payload: Mapping[str, Any]

    @cached_property
    def payload_text(self) -> str:
        """The payload as canonical JSON, as it is stored.

        Raises:
            CanonicalFormError: it holds what JSON lacks.
        """
        return canonical_json(dict(self.payload)).decode()

    @cached_property
    def digest(self) -> Digest:
        """Digest of the canonical form of `document`; the next event names it.

        Raises:
            CanonicalFormError: the event holds what JSON lacks.
        """
        return of_bytes(canonical_form(self._envelope(), self.payload_text))

    def document(self) -> dict[str, Any]:
        """Return the event as one JSON document."""
        return {**self._envelope(), "payload": dict(self.payload)}

    def _envelope(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "job_id": self.job_id,
            "attempt": self.attempt,
            "seq": self.seq,
            "prev": self.prev,
            "step": self.step,
            "epoch": self.epoch,
            "time": self.time,
            "kind": str(self.kind),
        }


def canonical_form(envelope: Mapping[str, Any], payload: str) -> bytes:
    """Return the RFC 8785 form of an event whose payload is canonical JSON already, and is not encoded again.

    Args:
        envelope: every field but the payload.
        payload: canonical JSON.
    """
    before = {name: value for name, value in envelope.items() if name < _PAYLOAD}
    after = {name: value for name, value in envelope.items() if name > _PAYLOAD}
    middle = f',"{_PAYLOAD}":{payload},'.encode()
    return canonical_json(before)[:-1] + middle + canonical_json(after)[1:]


def number(value: float) -> float | dict[str, str]:
    """Return a float as a payload holds it: JSON has no number that is not finite."""
    return value if math.isfinite(value) else {"non_finite": str(float(value))}


def check_job_id(job_id: str) -> None:
    """Refuse an id that cannot be the name of a file.

    Raises:
        InputError: it is empty, too long, or holds other characters.
    """
    if not _JOB_ID.fullmatch(job_id):
        raise InputError(f"{job_id!r} is no job id; use at most 80 letters, digits, dots, dashes and underscores")


def next_events(
    job_id: str, attempt: int, head: tuple[int, Digest] | None, drafts: Sequence[Draft], time: str
) -> list[Event]:
    """Return drafts as the events that follow `head`.

    Args:
        job_id: whose they are.
        attempt: of the job so far, 0 if it never opened; each `job_opened` begins the next one.
        head: seq and digest of the job's newest event; None if there is none.
        drafts: what happened, oldest first.
        time: UTC, ISO 8601.

    Raises:
        CanonicalFormError: a draft holds what JSON lacks.
    """
    seq, prev = (-1, None) if head is None else head
    events: list[Event] = []
    for draft in drafts:
        seq += 1
        attempt += draft.kind is Kind.JOB_OPENED
        epoch = float(draft.epoch)
        event = Event(job_id, attempt, seq, prev, draft.step, epoch, time, draft.kind, draft.payload)
        events.append(event)
        prev = event.digest
    return events
