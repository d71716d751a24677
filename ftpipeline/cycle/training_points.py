"""From a job's ledger events to what the detector looks at, and what it remembers of the job between two scans.

Law: however the events are cut into chunks, `look` over the chunks leaves the memory that one `look` over all of them
leaves. What cannot be used is counted and never taken for a sign of health.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from ftpipeline.errors import InputError, SourceError
from ftpipeline.guard.config import Config, Envelope
from ftpipeline.guard.detect import detection, observe
from ftpipeline.guard.metric_rows import RowHistory
from ftpipeline.guard.points import Event as Change
from ftpipeline.guard.points import EventKind, Point
from ftpipeline.guard.state import State
from ftpipeline.guard.verdicts import Detection, Stage
from ftpipeline.ledger.events import Event, Kind

_KEPT = 5  # reasons that are remembered; all unusable rows are counted


@dataclass(frozen=True)
class Memory:
    """What is remembered of a job.

    Attributes:
        attempt: the current one; 0 before the first event.
        state: of the detector.
        changes: changes of the training that were declared so far.
        accumulation: batches that make one step, as last seen; None before the first point.
        envelope: bound on the divergence from the reference model that the job is judged by.
        unusable: events and points of the current attempt that could not be used.
        reasons: why, the first few.
    """

    attempt: int = 0
    state: State = field(default_factory=State)
    changes: tuple[Change, ...] = ()
    accumulation: int | None = None
    envelope: Envelope | None = None
    unusable: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def config(self) -> Config:
        """The thresholds that the job is judged by, the same for all of its points."""
        return Config(kl_envelope=self.envelope)

    def refuse(self, reason: str) -> "Memory":
        """Return the memory with one more event or point that could not be used."""
        reasons = self.reasons if len(self.reasons) == _KEPT else (*self.reasons, reason)
        return replace(self, unusable=self.unusable + 1, reasons=reasons)

    def verdict(self) -> Detection:
        """Return what is known of the current attempt; a job of which something could not be read is never healthy."""
        found = detection(self.state, self.config)
        if found.stage is Stage.HEALTHY and self.unusable:
            return replace(found, stage=Stage.INSUFFICIENT)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON; `from_json` reads it back."""
        bound = self.envelope
        return {
            "attempt": self.attempt,
            "state": self.state.to_json(),
            "changes": [[change.step, change.kind.value, change.attempt] for change in self.changes],
            "accumulation": self.accumulation,
            "envelope": None if bound is None else {"steps": list(bound.steps), "upper": list(bound.upper)},
            "unusable": self.unusable,
            "reasons": list(self.reasons),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Memory":
        """Return the memory that `to_json` wrote.

        Raises:
            InputError: it was written by another version.
        """
        try:
            bound = document["envelope"]
            return cls(
                attempt=document["attempt"],
                state=State.from_json(document["state"]),
                changes=tuple(Change(step, EventKind(kind), attempt) for step, kind, attempt in document["changes"]),
                accumulation=document["accumulation"],
                envelope=None if bound is None else Envelope(tuple(bound["steps"]), tuple(bound["upper"])),
                unusable=document["unusable"],
                reasons=tuple(document["reasons"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"what is remembered of a job cannot be read ({error!r}); look from the start") from error


@dataclass(frozen=True)
class Unreadable:
    """An event that this version cannot read.

    Attributes:
        attempt: of the job.
        seq: place in the job's chain.
        reason: why.
    """

    attempt: int
    seq: int
    reason: str


def look(memory: Memory, events: Sequence[Event | Unreadable]) -> tuple[Memory, list[Detection]]:
    """Look at more events of a job.

    Args:
        memory: what is remembered of the job.
        events: its next events, in their order.

    Returns:
        The new memory, and the verdict on every attempt that the events belong to, in their order: that a diverged
        attempt was followed by another one must not hide it.
    """
    verdicts = []
    for attempt, own in groupby(events, key=lambda event: event.attempt):
        if attempt != memory.attempt:
            memory = replace(memory, attempt=attempt, unusable=0, reasons=())
        memory = _look_at_attempt(memory, list(own))
        verdicts.append(memory.verdict())
    return memory, verdicts


def _look_at_attempt(memory: Memory, events: Sequence[Event | Unreadable]) -> Memory:
    points: list[Point] = []
    for event in events:
        if isinstance(event, Unreadable):
            memory = memory.refuse(f"event {event.seq}: {event.reason}")
            continue
        for row in _rows(event):
            try:
                memory, point = _take(memory, event, row)
            except SourceError as error:
                memory = memory.refuse(f"event {event.seq}: {error}")
            else:
                points += [] if point is None else [point]
    state, _ = observe(memory.state, points, memory.config, memory.changes)
    return replace(memory, state=state)


def _rows(event: Event) -> Iterator[object]:
    """Yield the rows of an event that the detector may look at."""
    match event.kind:
        case Kind.JOB_OPENED:
            yield from _list(event.payload.get("changes", []))
        case Kind.METRICS:
            yield from _list(event.payload.get("points"))
        case Kind.EVALUATION:
            yield _evaluation(event)


def _list(value: object) -> Iterator[object]:
    """Yield the items of a list; what is none is one row that cannot be used."""
    yield from value if isinstance(value, list | tuple) else [value]


def _evaluation(event: Event) -> dict[str, object]:
    measured = {name: event.payload[name] for name in ("val_loss", "kl") if event.payload.get(name) is not None}
    scores = event.payload.get("scores") or {}
    named = {f"score/{name}": value for name, value in scores.items()} if isinstance(scores, Mapping) else {}
    return {"step": event.step, **measured, **named}


def _take(memory: Memory, event: Event, row: object) -> tuple[Memory, Point | None]:
    """Return what a row says, and the memory with the changes of the training that it shows.

    Raises:
        SourceError: the row cannot be used; the message is the reason.
    """
    if not isinstance(row, Mapping):
        raise SourceError(f"a row is {type(row).__name__}, not an object")
    read = RowHistory().read({**row, "attempt": event.attempt})
    if isinstance(read, Change):
        return _declare(memory, read), None
    if read is None or (event.kind is Kind.METRICS and read.loss is None):
        raise SourceError("no loss" if event.kind is Kind.METRICS else "nothing was measured")
    return _accumulate(memory, row, read), read


def _accumulate(memory: Memory, row: Mapping[str, Any], point: Point) -> Memory:
    """Take note of how many batches make a step: where their number changes, the noise of the loss does."""
    batches = row.get("accumulation")
    if not isinstance(batches, int):
        return memory
    known = memory.accumulation
    if known is not None and known != batches:
        memory = _declare(memory, Change(point.step, EventKind.ACCUMULATION_CHANGE, point.attempt))
    return replace(memory, accumulation=batches)


def _declare(memory: Memory, change: Change) -> Memory:
    return memory if change in memory.changes else replace(memory, changes=(*memory.changes, change))
