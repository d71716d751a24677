"""Which digest an asset partition holds (contract C6).

Laws: rows are only added; what a run wrote is what that run finds, and a re-execution finds its parents'; elsewhere the
latest by commit order counts, and a partition is never changed by a row of another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, select

from ftpipeline.digest import Digest
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.tables import pointers

_UNPARTITIONED = ""


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
        attempt_of = {
            "asset": asset,
            "partition": _partition_text(partition),
            "run_id": run_id,
            "attempt": attempt,
        }
        with self._database.write() as connection:
            one_writer(connection, pointers)
            newest = _newest(connection, *(pointers.c[name] == value for name, value in attempt_of.items()))
            if newest is None or newest.digest != digest:
                committed = datetime.now(UTC).isoformat(timespec="microseconds")
                connection.execute(pointers.insert().values(**attempt_of, digest=digest, committed=committed))

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
            for run_id in run_ids:
                if found := _newest(connection, *_of(asset, partition), pointers.c.run_id == run_id):
                    return found
            return _newest(connection, *_of(asset, partition))

    def ending_at(self, digest: Digest) -> list[Pointer]:
        """Return the last rows, in commit order, of the asset partitions that hold `digest` now."""
        with self._database.read() as connection:
            written = connection.execute(select(pointers).where(pointers.c.digest == digest).order_by(pointers.c.seq))
            places = dict.fromkeys((row.asset, _partition_of(row.partition)) for row in written)
            last = [_newest(connection, *_of(*place)) for place in places]
        return [pointer for pointer in last if pointer is not None and pointer.digest == digest]

    def latest(self, asset: str, partition: str | None) -> Pointer | None:
        """Return the asset partition's last row in commit order; None when it was never written."""
        return self.find(asset, partition, ())


def _partition_text(partition: str | None) -> str:
    return _UNPARTITIONED if partition is None else partition


def _partition_of(text: str) -> str | None:
    return None if text == _UNPARTITIONED else text


def _of(asset: str, partition: str | None) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return pointers.c.asset == asset, pointers.c.partition == _partition_text(partition)


def _newest(connection: Connection, *conditions: ColumnElement[bool]) -> Pointer | None:
    row = connection.execute(select(pointers).where(*conditions).order_by(pointers.c.seq.desc()).limit(1)).first()
    if row is None:
        return None
    return Pointer(row.asset, _partition_of(row.partition), row.run_id, row.attempt, row.digest, row.seq)
