"""What the detector remembers of every job between two scans, and when all of them were last looked at."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, select

from ftpipeline.cycle.training_points import Memory
from ftpipeline.digest import Digest
from ftpipeline.guard.config import Envelope
from ftpipeline.guard.verdicts import Stage
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.results import utc_text
from ftpipeline.store.tables import detector_envelopes, detector_states, guard_scans

NEVER = -1
"""What stands for the last event that was looked at, where there is none."""

_SCOPE = "all jobs"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Looked:
    """How far a job was looked at.

    Attributes:
        attempt: the attempt of the last event.
        seq: the last event.
        stage: verdict at that event.
        looked: when, UTC.
        memory: what is remembered.
    """

    job_id: str
    attempt: int = 0
    seq: int = NEVER
    stage: Stage = Stage.INSUFFICIENT
    looked: datetime = _LONG_AGO
    memory: Memory = field(default_factory=Memory)


class DetectorStates:
    """The tables of states, healthy envelopes and scans."""

    def __init__(self, database: Database) -> None:
        """Keep them in `database`."""
        self._database = database

    def places(self) -> dict[str, tuple[int, str]]:
        """Return, by job, the last event that was looked at and when that was."""
        columns = select(detector_states.c.job_id, detector_states.c.seq, detector_states.c.looked)
        with self._database.read() as connection:
            return {job_id: (seq, looked) for job_id, seq, looked in connection.execute(columns)}

    def of(self, job_id: str) -> Looked | None:
        """Return how far a job was looked at; None if it never was.

        Raises:
            InputError: what is remembered was written by another version of the detector.
        """
        with self._database.read() as connection:
            row = connection.execute(select(detector_states).where(detector_states.c.job_id == job_id)).one_or_none()
        return None if row is None else _looked(row)

    def stages(self) -> dict[str, Stage]:
        """Return the verdict on every job at the last event that was looked at."""
        with self._database.read() as connection:
            rows = connection.execute(select(detector_states.c.job_id, detector_states.c.stage))
            return {job_id: Stage(stage) for job_id, stage in rows}

    def put(self, looked: Iterable[Looked]) -> None:
        """Remember how far jobs were looked at; one that another scan took further meanwhile stays as it is."""
        with self._database.write() as connection:
            one_writer(connection, detector_states)
            for one in looked:
                known = connection.scalar(select(detector_states.c.seq).where(detector_states.c.job_id == one.job_id))
                if known is None or known <= one.seq:
                    _replace(connection, detector_states, {"job_id": one.job_id}, _values(one))

    def finished(self, time: datetime) -> None:
        """Record that every job was looked at up to what its chain held at `time`."""
        with self._database.write() as connection:
            one_writer(connection, guard_scans)
            _replace(connection, guard_scans, {"scope": _SCOPE}, {"finished": utc_text(time)})

    def last_finished(self) -> datetime | None:
        """Return when every job was last looked at; None if that never was."""
        with self._database.read() as connection:
            time = connection.scalar(select(guard_scans.c.finished).where(guard_scans.c.scope == _SCOPE))
        return None if time is None else datetime.fromisoformat(time)

    def envelope(self, family: Digest | None) -> Envelope | None:
        """Return how far healthy jobs of a family move from the reference model; None where that is not known."""
        if family is None:
            return None
        with self._database.read() as connection:
            stored = connection.scalar(
                select(detector_envelopes.c.envelope).where(detector_envelopes.c.family == family)
            )
        if stored is None:
            return None
        document = json.loads(stored)
        return Envelope(tuple(document["steps"]), tuple(document["upper"]))

    def put_envelope(self, family: Digest, envelope: Envelope) -> None:
        """Let the jobs of a family that begin from now on be judged by `envelope`."""
        document = {"steps": list(envelope.steps), "upper": list(envelope.upper)}
        with self._database.write() as connection:
            one_writer(connection, detector_envelopes)
            _replace(connection, detector_envelopes, {"family": family}, {"envelope": _text(document)})


def _values(looked: Looked) -> dict[str, Any]:
    return {
        "attempt": looked.attempt,
        "seq": looked.seq,
        "stage": looked.stage.value,
        "looked": utc_text(looked.looked),
        "state": _text(looked.memory.to_json()),
    }


def _looked(row: Row[Any]) -> Looked:
    time = datetime.fromisoformat(row.looked)
    return Looked(row.job_id, row.attempt, row.seq, Stage(row.stage), time, Memory.from_json(json.loads(row.state)))


def _replace(connection: Connection, table: Table, key: Mapping[str, str], values: Mapping[str, Any]) -> None:
    is_it = [table.c[name] == value for name, value in key.items()]
    connection.execute(delete(table).where(*is_it))
    connection.execute(table.insert().values(**key, **values))


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, allow_nan=False, sort_keys=True)


def restarted(job_id: str, envelope: Envelope | None) -> Looked:
    """Return the state of a job that is looked at from its first event on."""
    return replace(Looked(job_id), memory=Memory(envelope=envelope))
