"""What the support desk's export adds to a message: who labelled it and how well, and when the row was ingested."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from ftpipeline.example.queues import Queue

_AUTO_ACCEPTED = 0.12
_AUTO_WRONG = 0.25
_CORRECTED = 0.22
_HUMAN_WRONG = 0.015
_MALFORMED = 0.006
_LATE_INGESTED = 0.01


@dataclass(frozen=True)
class Ticket:
    """One row of the table `tickets`; times are UTC."""

    ticket_id: str
    thread_id: str
    customer_id: str
    created_at: datetime
    ingested_at: datetime
    channel: str
    queue: str
    label_source: str
    body: str


def label(rng: Random, queue: Queue, open_queues: Sequence[Queue]) -> tuple[str, str]:
    """Return the label as exported, and its source.

    A machine's labels are wrong far more often than a person's; a wrong label is one of the same family. A few labels
    are spelled in a way that no label list knows.

    Args:
        rng: where every choice comes from.
        queue: the right queue.
        open_queues: queues that tickets can be put into at the time.
    """
    automatic = rng.random() < _AUTO_ACCEPTED
    name = queue.name
    if rng.random() < (_AUTO_WRONG if automatic else _HUMAN_WRONG):
        name = rng.choice([other.name for other in open_queues if other.family == queue.family])
    if rng.random() < _MALFORMED:
        name = rng.choice((f" {name.capitalize()}", name.upper(), "unknown_queue"))
    if automatic:
        return name, "auto_accepted"
    return name, "human_corrected" if rng.random() < _CORRECTED else "human_confirmed"


def ingestion_delay(rng: Random) -> timedelta:
    """Return how long after its creation a ticket is ingested: minutes, for a few rows days."""
    if rng.random() < _LATE_INGESTED:
        return timedelta(days=rng.randint(2, 9))
    return timedelta(seconds=rng.randint(20, 1800))
