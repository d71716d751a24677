"""What the ledger keeps from garbage collection: retained checkpoints, what other jobs consumed, and receipts."""

from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import Connection, select

from ftpipeline.digest import Digest, parse
from ftpipeline.ledger import rows
from ftpipeline.ledger.chain import known_events
from ftpipeline.ledger.events import Event, Kind
from ftpipeline.ledger.quarantined import attempt_digest
from ftpipeline.ledger.retention import keep_of, needed_trees, newest, retained
from ftpipeline.store.tables import quarantine_marks

_ALL_JOBS = "all jobs"
_SAVING = (Kind.JOB_OPENED, Kind.CHECKPOINT_SAVED)
_RECEIPTS = (Kind.DIVERGENCE_DETECTED, Kind.ISOLATION_ACTION)


def ledger_roots(connection: Connection) -> set[Digest]:
    """Return the trees of retained checkpoints, of consumed artifacts that a job made, and receipts that events name.

    Raises:
        LedgerError: an event is of a newer schema, so that nobody knows what it needs.
    """
    checkpoints = [event.payload["tree"] for kept in retained_by_job(connection).values() for event in kept]
    consumed = _events(connection, [Kind.ARTIFACT_CONSUMED])
    artifacts = [event.payload["tree"] for event in consumed if event.payload["maker"] is not None]
    receipts = [event.payload["receipt"] for event in _events(connection, _RECEIPTS)]
    return {parse(digest) for digest in (*checkpoints, *artifacts, *receipts)}


def retained_by_job(connection: Connection, job_ids: Collection[str] | None = None) -> dict[str, list[Event]]:
    """Return the `checkpoint_saved` events of the checkpoints that are kept, by job, oldest first.

    Args:
        connection: of the transaction.
        job_ids: of which jobs; None for all.
    """
    by_job: dict[str, list[Event]] = defaultdict(list)
    for event in _events(connection, _SAVING, job_ids):
        by_job[event.job_id].append(event)
    consumed: dict[str, list[Event]] = defaultdict(list)
    for event in _events(connection, [Kind.CHECKPOINT_CONSUMED]):
        consumed[event.payload["producer"]].append(event)
    marks = _standing_marks(connection)
    return {job_id: _retained(job_id, events, consumed[job_id], marks) for job_id, events in by_job.items()}


def _retained(job_id: str, events: list[Event], consumed: list[Event], marks: Collection[Digest]) -> list[Event]:
    opened = newest(events, Kind.JOB_OPENED)
    saved = [event for event in events if event.kind is Kind.CHECKPOINT_SAVED]
    marked = {
        event.payload["tree"]
        for event in saved
        if not {event.payload["tree"], attempt_digest(job_id, event.attempt)}.isdisjoint(marks)
    }
    return retained(saved, keep_of(opened), needed_trees(job_id, opened, consumed), marked)


def _standing_marks(connection: Connection) -> set[Digest]:
    standing = select(quarantine_marks.c.digest).where(quarantine_marks.c.lifted.is_(None))
    return {parse(digest) for digest in connection.scalars(standing)}


def _events(connection: Connection, kinds: Collection[Kind], job_ids: Collection[str] | None = None) -> list[Event]:
    return known_events(_ALL_JOBS, rows.of_kinds(connection, kinds, job_ids))
