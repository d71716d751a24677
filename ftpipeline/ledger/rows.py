"""The rows of the ledger, inside the caller's transaction."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, literal_column, select

from ftpipeline.digest import Digest
from ftpipeline.ledger.chain import Head, StoredEvent, json_object, known_events
from ftpipeline.ledger.events import SCHEMA, Event, Kind
from ftpipeline.store.tables import ledger_events, ledger_jobs, ledger_signed_heads

_COLUMNS = [column for column in ledger_events.c if column.name != "generation"]
_BY_PLACE = (ledger_events.c.job_id, ledger_events.c.seq)
_RARE = ledger_events.c.kind != literal_column("'metrics'")  # in the words of the index, which holds no metrics

_NEWER = ledger_events.c.schema != literal_column(f"'{SCHEMA}'")  # in the words of another index, which is mostly empty


@dataclass(frozen=True)
class JobHead:
    """Where a job stands, by its newest event.

    Attributes:
        job_id: the job.
        attempt: its newest.
        seq: of the newest event.
        digest: of the newest event.
        step: of the newest event.
        epoch: of the newest event.
        is_open: whether no `job_closed` followed the newest `job_opened`.
        opened: payload of the newest `job_opened`.
    """

    job_id: str
    attempt: int
    seq: int
    digest: Digest
    step: int
    epoch: float
    is_open: bool
    opened: dict[str, Any]

    @property
    def is_replay(self) -> bool:
        """Whether it replays another job: it may save nothing, so nobody can consume anything of it."""
        return self.opened.get("replay_of") is not None

    @property
    def head(self) -> Head:
        """The place of the newest event."""
        return Head(self.seq, self.digest)


def insert(connection: Connection, events: Iterable[Event], generation: int) -> None:
    """Add events under the lease generation; the triggers refuse what does not follow."""
    rows = [{**vars(StoredEvent.of(event)), "generation": generation} for event in events]
    connection.execute(ledger_events.insert(), rows)


def find_head(connection: Connection, job_id: str) -> JobHead | None:
    """Return where a job stands; None when it never opened."""
    row = connection.execute(select(ledger_jobs).where(ledger_jobs.c.job_id == job_id)).one_or_none()
    return None if row is None else _job_head(row)


def heads(connection: Connection, *, open_only: bool) -> list[JobHead]:
    """Return where each job stands, by job id."""
    query = select(ledger_jobs).order_by(ledger_jobs.c.job_id)
    if open_only:
        query = query.where(ledger_jobs.c.is_open)
    return [_job_head(row) for row in connection.execute(query)]


def of_job(
    connection: Connection, job_id: str, after: int, limit: int | None, kinds: Collection[Kind] | None
) -> list[StoredEvent]:
    """Return a job's events after a place, oldest first.

    Those of a newer schema come after those of the wanted kinds: nobody knows which kinds they really are.

    Args:
        connection: of the transaction.
        job_id: the job.
        after: seq of the last event that is not wanted; -1 for none.
        limit: how many at most.
        kinds: which; None for all.
    """
    query = select(*_COLUMNS).where(ledger_events.c.job_id == job_id, ledger_events.c.seq > after)
    query = query.order_by(ledger_events.c.seq)
    if kinds is None:
        return _stored(connection, query.limit(limit))
    return _stored(connection, _of_kinds(query, kinds).limit(limit)) + _stored(connection, query.where(_NEWER))


def of_kinds(
    connection: Connection, kinds: Collection[Kind], job_ids: Collection[str] | None = None, mention: str | None = None
) -> list[StoredEvent]:
    """Return events of rare kinds, by job and place, and then those of a newer schema, whatever their kind.

    Args:
        connection: of the transaction.
        kinds: which; not `metrics`.
        job_ids: of which jobs; None for all.
        mention: text that their payloads hold.
    """
    query = select(*_COLUMNS).order_by(*_BY_PLACE)
    if job_ids is not None:
        query = query.where(ledger_events.c.job_id.in_(sorted(job_ids)))
    newer = query.where(_NEWER)
    if mention is not None:
        query = query.where(ledger_events.c.payload.contains(mention, autoescape=True))
    return _stored(connection, _of_kinds(query, kinds)) + _stored(connection, newer)


def named_jobs(connection: Connection) -> list[str]:
    """Return every job that a head, an event, a signed head or a consumer speaks of, sorted."""
    opened = ledger_events.c.kind == Kind.JOB_OPENED
    queries = (
        select(ledger_jobs.c.job_id),
        select(ledger_events.c.job_id).where(opened, _RARE),
        select(ledger_signed_heads.c.job_id).distinct(),
    )
    named = {job_id for query in queries for job_id in connection.scalars(query)}
    consumed = known_events("all jobs", of_kinds(connection, [Kind.CHECKPOINT_CONSUMED]))
    return sorted(named | {event.payload["producer"] for event in consumed})


def find_place(connection: Connection, job_id: str, digest: Digest) -> int | None:
    """Return the seq of a job's event; None when the job has no such event."""
    mine = (ledger_events.c.job_id == job_id, ledger_events.c.digest == digest)
    return connection.scalar(select(ledger_events.c.seq).where(*mine))


def newest_metrics(connection: Connection, job_id: str, seq: int) -> list[StoredEvent]:
    """Return the newest `metrics` event at or before a place, in a list; an empty one if there is none."""
    mine = (ledger_events.c.job_id == job_id, ledger_events.c.seq <= seq, ledger_events.c.kind == Kind.METRICS)
    return _stored(connection, select(*_COLUMNS).where(*mine).order_by(ledger_events.c.seq.desc()).limit(1))


def _of_kinds(query: Select[Any], kinds: Collection[Kind]) -> Select[Any]:
    query = query.where(ledger_events.c.kind.in_(sorted(kinds)))
    return query if Kind.METRICS in kinds else query.where(_RARE)


def _stored(connection: Connection, query: Select[Any]) -> list[StoredEvent]:
    return [StoredEvent(**row) for row in connection.execute(query).mappings()]


def _job_head(row: Row[Any]) -> JobHead:
    return JobHead(
        job_id=row.job_id,
        attempt=row.attempt,
        seq=row.seq,
        digest=row.digest,
        step=row.step,
        epoch=row.epoch,
        is_open=row.is_open,
        opened=json_object(row.job_id, row.seq, row.opened),
    )
