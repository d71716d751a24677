"""Tombstones: what is gone or set aside on purpose, so that nobody takes it for lost or uses it again.

Two kinds. A *step result* with a tombstone is no memo hit any more, and its row stays for lineage. An *erased blob* has
a row that says why its bytes are not there.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy import Connection, select, update

from ftpipeline.digest import Digest
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.tables import erased_blobs, step_results

_AT_ONCE = 500  # parameters of one statement; SQLite takes no more than some thousand


class Tombstone(StrEnum):
    """Why a step result no longer stands for its key."""

    QUARANTINED = "quarantined"
    COLLECTED = "collected"
    """Nothing reached its output, and gc removed the bytes."""
    ERASED = "erased"
    """Its output held rows of somebody whose data were erased."""


class ErasedBlobs:
    """The table of blobs whose bytes were erased on purpose."""

    def __init__(self, database: Database) -> None:
        """Keep the rows in `database`."""
        self._database = database

    def add(self, digest: Digest, reason: str) -> None:
        """Record that the blob is erased, before its bytes go; the first reason stands."""
        with self._database.write() as connection:
            one_writer(connection, erased_blobs)
            if _reason(connection, digest) is None:
                time = datetime.now(UTC).isoformat(timespec="microseconds")
                connection.execute(erased_blobs.insert().values(digest=digest, reason=reason, time=time))

    def reason(self, digest: Digest) -> str | None:
        """Return why the blob was erased; None when it was not."""
        with self._database.read() as connection:
            return _reason(connection, digest)

    def absence(self, digest: Digest) -> str:
        """Say what an absent blob is: erased and why, or missing."""
        reason = self.reason(digest)
        return "missing" if reason is None else f"erased on purpose ({reason})"


def retire(connection: Connection, outputs: Collection[Digest], why: Tombstone) -> int:
    """Let the results that made `outputs` stand for their keys no more; return how many there were."""
    ordered = sorted(outputs)
    count = 0
    for start in range(0, len(ordered), _AT_ONCE):
        wanted = step_results.c.output.in_(ordered[start : start + _AT_ONCE])
        standing = step_results.c.tombstone.is_(None)
        count += connection.execute(update(step_results).where(wanted, standing).values(tombstone=why)).rowcount
    return count


def revive(connection: Connection, output: Digest, why: Tombstone) -> None:
    """Undo `retire` for one output, except where another result stands for the key by now."""
    other = step_results.alias()
    standing = select(other.c.seq).where(other.c.key == step_results.c.key, other.c.tombstone.is_(None))
    conditions = (step_results.c.output == output, step_results.c.tombstone == why, ~standing.exists())
    connection.execute(update(step_results).where(*conditions).values(tombstone=None))


def _reason(connection: Connection, digest: Digest) -> str | None:
    return connection.scalar(select(erased_blobs.c.reason).where(erased_blobs.c.digest == digest))
