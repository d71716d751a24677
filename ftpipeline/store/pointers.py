"""Which digest an asset partition holds (contract C6).

Laws: rows are only added; what a run wrote is what that run finds, and a re-execution finds its parents'; elsewhere the
latest by commit order counts, and a partition is never changed by a row of another one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, select

from ftpipeline.digest import Digest
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.quarantine import refuse_marked
from ftpipeline.store.tables import pointers

_UNPARTITIONED = ""

# Built once: a run asks for dozens of pointers, and building a query costs more than its answer.
_IS_PLACE = (pointers.c.asset == bindparam("asset"), pointers.c.partition == bindparam("partition"))
_ALL_AT_PLACE = select(pointers).where(*_IS_PLACE).order_by(pointers.c.seq.desc())
_AT_PLACE = _ALL_AT_PLACE.limit(1)
_OF_RUN = _AT_PLACE.where(pointers.c.run_id == bindparam("run_id"))
_OF_ATTEMPT = _OF_RUN.where(pointers.c.attempt == bindparam("attempt"))
_INSERT = insert(pointers)


@dataclass(frozen=True)
class Pointer:
    """One row: what an attempt of a run wrote.

    Attributes:
        asset: key of the asset.
        partition: partition key; None for an unpartitioned asset.
        run_id: run that wrote it.
        attempt: attempt of the run's step, from 0.
        digest: of the tree that the asset holds since.
        seq: position in commit order.
    """

    asset: str
    partition: str | None
    run_id: str
    attempt: int
    digest: Digest
    seq: int


class Pointers:
    """The table of pointers."""

    def __init__(self, database: Database) -> None:
        """Keep the pointers in `database`."""
        self._database = database

    def put(self, asset: str, partition: str | None, run_id: str, attempt: int, digest: Digest) -> None:
        """Point the asset's partition at `digest` from now on.

        Writing what the attempt already points at changes nothing.
        """
        attempt_of = {**_place(asset, partition), "run_id": run_id, "attempt": attempt}
        with self._database.write() as connection:
            one_writer(connection, pointers)
            newest = _newest(connection, _OF_ATTEMPT, attempt_of)
            if newest is None or newest.digest != digest:
                committed = datetime.now(UTC).isoformat(timespec="microseconds")
                connection.execute(_INSERT, {**attempt_of, "digest": digest, "committed": committed})

    def find(self, asset: str, partition: str | None, run_ids: Sequence[str]) -> Pointer | None:
        """Return what a run reads.

        Args:
            asset: key of the asset.
            partition: partition key; None for an unpartitioned asset.
            run_ids: the run itself, then the runs it re-executes, nearest first.

        Returns:
            The newest row of the first of these runs that wrote one; else the latest row of any run; None when the
            partition was never written.
        """
        with self._database.read() as connection:
            return _find(connection, asset, partition, run_ids)

    def usable(self, asset: str, partition: str | None, run_ids: Sequence[str]) -> Pointer | None:
        """Return the same as `find`, where that is not under quarantine at this moment.

        Raises:
            QuarantinedError: it is; no older row stands in for it.
        """
        with self._database.read() as connection:
            found = _find(connection, asset, partition, run_ids)
            if found is not None:
                refuse_marked(connection, found.digest)
            return found

    def ending_at(self, digest: Digest) -> list[Pointer]:
        """Return the last rows, in commit order, of the asset partitions that hold `digest` now."""
        with self._database.read() as connection:
            written = connection.execute(select(pointers).where(pointers.c.digest == digest).order_by(pointers.c.seq))
            places = dict.fromkeys((row.asset, _partition_of(row.partition)) for row in written)
            last = [_newest(connection, _AT_PLACE, _place(*place)) for place in places]
        return [pointer for pointer in last if pointer is not None and pointer.digest == digest]

    def latest_but(self, asset: str, partition: str | None, unusable: Collection[Digest]) -> Pointer | None:
        """Return the asset partition's last row in commit order that points at none of `unusable`; None without one."""
        with self._database.read() as connection:
            rows = connection.execute(_ALL_AT_PLACE, _place(asset, partition))
            return next((_pointer(row) for row in rows if row.digest not in unusable), None)

    def held(self, asset: str) -> list[Pointer]:
        """Return the last row of each partition of an asset, by partition."""
        last = select(func.max(pointers.c.seq)).where(pointers.c.asset == asset).group_by(pointers.c.partition)
        with self._database.read() as connection:
            rows = connection.execute(select(pointers).where(pointers.c.seq.in_(last)).order_by(pointers.c.partition))
            return [_pointer(row) for row in rows]

    def of_run(self, run_id: str) -> list[Pointer]:
        """Return the rows that a run wrote, in commit order."""
        with self._database.read() as connection:
            rows = connection.execute(select(pointers).where(pointers.c.run_id == run_id).order_by(pointers.c.seq))
            return [_pointer(row) for row in rows]

    def latest(self, asset: str, partition: str | None) -> Pointer | None:
        """Return the asset partition's last row in commit order; None when it was never written."""
        return self.find(asset, partition, ())


def _place(asset: str, partition: str | None) -> dict[str, Any]:
    return {"asset": asset, "partition": _UNPARTITIONED if partition is None else partition}


def _partition_of(text: str) -> str | None:
    return None if text == _UNPARTITIONED else text


def _find(connection: Connection, asset: str, partition: str | None, run_ids: Sequence[str]) -> Pointer | None:
    place = _place(asset, partition)
    for run_id in run_ids:
        if found := _newest(connection, _OF_RUN, {**place, "run_id": run_id}):
            return found
    return _newest(connection, _AT_PLACE, place)


def _newest(connection: Connection, query: Select[Any], parameters: Mapping[str, Any]) -> Pointer | None:
    row = connection.execute(query, parameters).first()
    return None if row is None else _pointer(row)


def _pointer(row: Row[Any]) -> Pointer:
    return Pointer(row.asset, _partition_of(row.partition), row.run_id, row.attempt, row.digest, row.seq)
