"""Step results with their lineage (contract C5).

Laws: a key has at most one standing result, the first that was recorded, whoever asks; a record reads back equal; what
was recorded stays readable as lineage, also when it stands for its key no more (`ftpipeline.store.tombstones`).
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, bindparam, select, update

from ftpipeline.digest import Digest, canonical_json
from ftpipeline.errors import CanonicalFormError
from ftpipeline.records import LineageRecord
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.leases import Lease, fence
from ftpipeline.store.quarantine import refuse_marked
from ftpipeline.store.tables import step_results

RENEW_USE_AFTER = timedelta(hours=1)
"""How old the recorded time of use may grow before a hit writes it again; gc's grace period is longer."""

_COMMIT_ORDER = (step_results.c.finished, step_results.c.key)

# Built once: a hit is a few of these and little else.
_STANDING = select(step_results).where(step_results.c.key == bindparam("key"), step_results.c.tombstone.is_(None))
_MADE = select(step_results).where(step_results.c.output == bindparam("output")).order_by(*_COMMIT_ORDER)


class StepResults:
    """The table of memoised results."""

    def __init__(self, database: Database) -> None:
        """Keep the results in `database`."""
        self._database = database

    def find(self, key: Digest) -> LineageRecord | None:
        """Return the standing result of the step key; None when it was not computed yet, or was set aside."""
        found = self._select(_STANDING, {"key": key})
        return found[0] if found else None

    def use(self, key: Digest) -> LineageRecord | None:
        """Return the same as `find`, and keep gc from collecting the result's output for its grace period."""
        with self._database.read() as connection:
            row = connection.execute(_STANDING, {"key": key}).one_or_none()
        now = datetime.now(UTC)
        if row is None or datetime.fromisoformat(row.used) > now - RENEW_USE_AFTER:
            return None if row is None else _from_row(row)
        with self._database.write() as connection:
            renewal = update(step_results).where(*_stands_for(key)).values(used=utc_text(now))
            renewed = connection.execute(renewal.returning(*step_results.c)).one_or_none()
            return None if renewed is None else _from_row(renewed)

    def record(self, record: LineageRecord, lease: Lease | None = None) -> LineageRecord:
        """Record a result, unless its key has one that stands.

        Args:
            record: the result.
            lease: the lease it was computed under; the result is written only if that still stands.

        Returns:
            The result that stands for the key: `record`, or the one that another writer recorded first.

        Raises:
            CanonicalFormError: a value has no JSON form, or a time has no zone; nothing is written.
            LeaseLostError: the lease was taken over; nothing is written.
            QuarantinedError: the output is the very tree that is under quarantine; nothing is written.
        """
        row = _to_row(record)
        with self._database.write() as connection:
            one_writer(connection, step_results)
            if lease is not None:
                fence(connection, lease)
            same_key = {"key": record.key}
            if connection.execute(_STANDING, same_key).first() is None:
                refuse_marked(connection, record.output)
                connection.execute(step_results.insert().values(row))
            return _from_row(connection.execute(_STANDING, same_key).one())

    def of_key(self, key: Digest) -> list[LineageRecord]:
        """Return every result that was ever recorded for the key, also those set aside, in commit order."""
        return self._select(select(step_results).where(step_results.c.key == key).order_by(step_results.c.seq))

    def made(self, output: Digest) -> list[LineageRecord]:
        """Return the results whose output is `output`, in the order they were finished."""
        return self._select(_MADE, {"output": output})

    def of_step(self, step: str) -> list[LineageRecord]:
        """Return the results of a step, in the order they were finished."""
        return self._select(select(step_results).where(step_results.c.step == step).order_by(*_COMMIT_ORDER))

    def dependants(self, digest: Digest) -> list[Digest]:
        """Return the outputs of the results that had `digest` as an input, in the order they were finished.

        Reads every result: it is asked for when something is corrupt or traced, not in a run.
        """
        mentions = select(step_results).where(step_results.c.inputs.contains(f'"{digest}"', autoescape=True))
        users = self._select(mentions.order_by(*_COMMIT_ORDER))
        return list(dict.fromkeys(user.output for user in users if digest in user.inputs.values()))

    def _select(self, statement: Select[Any], parameters: Mapping[str, Any] | None = None) -> list[LineageRecord]:
        with self._database.read() as connection:
            return [_from_row(row) for row in connection.execute(statement, parameters)]


def _stands_for(key: Digest) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return step_results.c.key == key, step_results.c.tombstone.is_(None)


def _to_row(record: LineageRecord) -> dict[str, Any]:
    if not math.isfinite(record.cpu_seconds):
        raise CanonicalFormError(f"step {record.step!r}: cpu_seconds is {record.cpu_seconds}; measure it again")
    return {
        "key": record.key,
        "step": record.step,
        "code": record.code,
        "inputs": _json(record.inputs),
        "params": _json(record.params),
        "output": record.output,
        "facts": _json(record.facts),
        "run_id": record.run_id,
        "manifest": record.manifest,
        "isolation": record.isolation,
        "started": _time(record.started, record.step),
        "finished": _time(record.finished, record.step),
        "cpu_seconds": record.cpu_seconds,
        "environment": record.environment,
        "libraries": _json(record.libraries),
        "escalations": canonical_json(record.escalations).decode(),
        "used": utc_text(datetime.now(UTC)),
    }


def _from_row(row: Row[Any]) -> LineageRecord:
    return LineageRecord(
        step=row.step,
        key=row.key,
        code=row.code,
        inputs=json.loads(row.inputs),
        params=json.loads(row.params),
        output=row.output,
        facts=json.loads(row.facts),
        run_id=row.run_id,
        manifest=row.manifest,
        isolation=row.isolation,
        started=datetime.fromisoformat(row.started),
        finished=datetime.fromisoformat(row.finished),
        cpu_seconds=row.cpu_seconds,
        environment=row.environment,
        libraries=json.loads(row.libraries),
        escalations=tuple(json.loads(row.escalations)),
    )


def _json(value: Mapping[str, Any]) -> str:
    return canonical_json(value).decode()


def _time(time: datetime, step: str) -> str:
    if time.tzinfo is None:
        raise CanonicalFormError(f"step {step!r}: time {time} has no zone; record times in UTC")
    return utc_text(time)


def utc_text(time: datetime) -> str:
    """Return a time as the database holds it: in UTC and of one width, so that text order is time order."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")
