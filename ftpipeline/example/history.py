"""Half a year of tickets with what makes real exports hard: repeats, leaks, personal data and labels to distrust."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import accumulate
from random import Random

from ftpipeline.example.export import Ticket, ingestion_delay, label
from ftpipeline.example.queues import Queue
from ftpipeline.example.weeks import LATE_START, moments
from ftpipeline.example.writer import Writer


class Kind(StrEnum):
    """How a ticket comes about."""

    FRESH = "fresh"
    REOPENED = "reopened"
    """The same customer writes again in an earlier thread."""
    SHARED = "shared"
    """Another customer of the same organisation writes in an earlier thread."""
    CANNED = "canned"
    """A form's text, with only the reason and the reference filled in."""
    RESUBMITTED = "resubmitted"
    """The same customer opens a new thread with exactly the same text."""
    NEAR_DUPLICATE = "near_duplicate"
    """Anybody opens a new thread with an earlier text inside boilerplate."""
    LEAKED = "leaked"
    """A text of the gold set: as it is, inside boilerplate, or above a signature."""


SHARES = {
    Kind.REOPENED: 0.08,
    Kind.SHARED: 0.02,
    Kind.CANNED: 0.10,
    Kind.RESUBMITTED: 0.03,
    Kind.NEAR_DUPLICATE: 0.03,
}
"""Share of the tickets that each kind has; leaks are counted, and the rest is fresh."""

CUSTOMERS = 900
TICKETS_PER_LEAK = 270

_PERSONAL = 0.07  # of the fresh and follow-up tickets, so that it is 6 % of all
_RECENT = 150  # how many tickets back a repeat may refer
_SKEW = 20  # customer number n writes in proportion to 1 / (n + _SKEW)


@dataclass(frozen=True)
class _Draft:
    """A ticket before it is labelled; `customer` counts from 0 and two neighbours form an organisation."""

    thread: int
    customer: int
    channel: str
    queue: Queue
    body: str


@dataclass(frozen=True)
class History:
    """The tickets in order of creation, and how many of them copy a gold text on purpose."""

    tickets: tuple[Ticket, ...]
    leaks: int


def write_history(
    rng: Random, queues: Sequence[Queue], gold: Sequence[tuple[str, Queue]], *, per_week: int, weeks: int
) -> History:
    """Return a history of `per_week * weeks` tickets.

    Args:
        rng: where every choice comes from.
        queues: all queues.
        gold: text and queue of each gold row, to leak from.
        per_week: tickets a week.
        weeks: weeks before the end of the calendar.
    """
    times = moments(rng, per_week=per_week, weeks=weeks)
    kinds = _kinds(rng, len(times))
    desk = _Desk(rng, queues, gold)
    tickets = tuple(
        desk.ticket(number, kind, when) for number, (kind, when) in enumerate(zip(kinds, times, strict=True), start=1)
    )
    return History(tickets, leaks=kinds.count(Kind.LEAKED))


def _kinds(rng: Random, total: int) -> list[Kind]:
    counts = {kind: round(total * share) for kind, share in SHARES.items()}
    counts[Kind.LEAKED] = total // TICKETS_PER_LEAK
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    kinds += [Kind.FRESH] * (total - len(kinds))
    rng.shuffle(kinds)
    return kinds


class _Desk:
    """Receives one ticket after the other and remembers what was written."""

    def __init__(self, rng: Random, queues: Sequence[Queue], gold: Sequence[tuple[str, Queue]]) -> None:
        self._rng = rng
        self._queues = queues
        self._early_queues = [queue for queue in queues if not queue.late]
        self._gold = gold
        self._writer = Writer(rng, queues)
        self._drafts: list[_Draft] = []
        self._threads = 0
        self._customers = list(accumulate(1 / (number + _SKEW) for number in range(CUSTOMERS)))

    def ticket(self, number: int, kind: Kind, when: datetime) -> Ticket:
        draft = self._draft(kind, when)
        self._drafts.append(draft)
        queue, source = label(self._rng, draft.queue, self._open(when))
        return Ticket(
            ticket_id=f"T-{number:06d}",
            thread_id=f"TH-{draft.thread:06d}",
            customer_id=f"C-{draft.customer + 1:04d}",
            created_at=when,
            ingested_at=when + ingestion_delay(self._rng),
            channel=draft.channel,
            queue=queue,
            label_source=source,
            body=draft.body,
        )

    def _draft(self, kind: Kind, when: datetime) -> _Draft:
        if kind is Kind.LEAKED:
            return self._leaked(when)
        if kind is Kind.CANNED:
            return self._canned(when)
        if kind is Kind.FRESH or not self._drafts:  # the very first ticket has nothing to repeat
            return self._fresh(when)
        return self._repeated(kind, self._rng.choice(self._drafts[-_RECENT:]), when)

    def _fresh(self, when: datetime) -> _Draft:
        queue, channel = self._queue(when), self._writer.channel()
        body = self._writer.message(queue, when, channel)
        return _Draft(self._new_thread(), self._customer(), channel, queue, self._with_personal_data(body, when))

    def _canned(self, when: datetime) -> _Draft:
        queue = self._queue(when)
        body = self._writer.phrase("canned", when, reason=queue.name.replace("_", " "))
        return _Draft(self._new_thread(), self._customer(), "app", queue, body)

    def _leaked(self, when: datetime) -> _Draft:
        open_now = self._open(when)
        text, queue = self._rng.choice([row for row in self._gold if row[1] in open_now])
        signed = f"{text}\n\n{self._writer.phrase('signatures', when)}"
        body = self._rng.choice((text, self._in_boilerplate(text, when), signed))
        return _Draft(self._new_thread(), self._customer(), self._writer.channel(), queue, body)

    def _repeated(self, kind: Kind, earlier: _Draft, when: datetime) -> _Draft:
        if kind is Kind.RESUBMITTED:
            return replace(earlier, thread=self._new_thread())
        if kind is Kind.NEAR_DUPLICATE:
            body = self._in_boilerplate(earlier.body, when)
            return replace(earlier, thread=self._new_thread(), customer=self._customer(), body=body)
        colleague = kind is Kind.SHARED
        message = self._writer.message(earlier.queue, when, earlier.channel)
        remark = self._writer.phrase("colleagues" if colleague else "follow_ups", when)
        body = self._with_personal_data(f"{message} {remark}.", when)
        return replace(earlier, customer=earlier.customer ^ 1 if colleague else earlier.customer, body=body)

    def _open(self, when: datetime) -> Sequence[Queue]:
        return self._queues if when >= LATE_START else self._early_queues

    def _queue(self, when: datetime) -> Queue:
        open_now = self._open(when)
        return self._rng.choices(open_now, [queue.weight for queue in open_now])[0]

    def _customer(self) -> int:
        return self._rng.choices(range(CUSTOMERS), cum_weights=self._customers)[0]

    def _new_thread(self) -> int:
        self._threads += 1
        return self._threads

    def _in_boilerplate(self, text: str, when: datetime) -> str:
        if self._rng.random() < 0.5:
            return f"{self._writer.phrase('boilerplate_before', when)}\n\n{text}"
        return f"{text}\n\n{self._writer.phrase('boilerplate_after', when)}"

    def _with_personal_data(self, body: str, when: datetime) -> str:
        if self._rng.random() >= _PERSONAL:
            return body
        if self._rng.random() < 0.5:
            return f"{body} {self._writer.phrase('contacts', when)}"
        return f"{body}\n\n{self._writer.phrase('signatures', when)}"
