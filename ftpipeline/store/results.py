"""Step results with their lineage (contract C5).

Laws: a key has at most one result, the first that was recorded, whoever asks; a record reads back equal.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, Select, select

from ftpipeline.digest import Digest, canonical_json
from ftpipeline.errors import CanonicalFormError
from ftpipeline.records import LineageRecord
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.tables import step_results

_COMMIT_ORDER = (step_results.c.finished, step_results.c.key)


class StepResults:
    """The table of memoised results."""

    def __init__(self, database: Database) -> None:
        """Keep the results in `database`."""
        self._database = database

    def find(self, key: Digest) -> LineageRecord | None:
        """Return the result of the step key `key`; None when it was not computed yet."""
        found = self._select(select(step_results).where(step_results.c.key == key))
        return found[0] if found else None

    def record(self, record: LineageRecord) -> LineageRecord:
        """Record a result, unless its key has one.

        Returns:
            The result that stands for the key: `record`, or the one that another writer recorded first.

        Raises:
            CanonicalFormError: a value has no JSON form, or a time has no zone; nothing is written.
        """
        row = _to_row(record)
        with self._database.write() as connection:
            one_writer(connection, step_results)
            same_key = select(step_results).where(step_results.c.key == record.key)
            if connection.execute(same_key).first() is None:
                connection.execute(step_results.insert().values(row))
            return _from_row(connection.execute(same_key).one())

    def made(self, output: Digest) -> list[LineageRecord]:
        """Return the results whose output is `output`, in the order they were finished."""
        return self._select(select(step_results).where(step_results.c.output == output).order_by(*_COMMIT_ORDER))

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

    def _select(self, statement: Select[Any]) -> list[LineageRecord]:
        with self._database.read() as connection:
            return [_from_row(row) for row in connection.execute(statement)]


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
        "started": _utc(record.started, record.step),
        "finished": _utc(record.finished, record.step),
        "cpu_seconds": record.cpu_seconds,
        "environment": record.environment,
        "libraries": _json(record.libraries),
        "escalations": canonical_json(record.escalations).decode(),
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


def _utc(time: datetime, step: str) -> str:
    if time.tzinfo is None:
        raise CanonicalFormError(f"step {step!r}: time {time} has no zone; record times in UTC")
    return time.astimezone(UTC).isoformat(timespec="microseconds")  # of one width, so that text order is time order
