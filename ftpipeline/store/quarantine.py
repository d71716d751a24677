"""Quarantine: marks on tree digests that no route may use (contract C10).

A mark is on a tree, never on its member blobs: a tokenizer that two models share would poison both. Laws: a digest is
quarantined while one of its marks is not lifted; marks are never forgotten; marking a tree and setting the step results
that made it aside is one transaction.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from ftpipeline.digest import Digest
from ftpipeline.errors import QuarantinedError, UnknownNameError
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.tables import quarantine_marks
from ftpipeline.store.tombstones import Tombstone, retire, revive

_NEWEST_LAST = quarantine_marks.c.seq
_STANDING = (
    select(quarantine_marks.c.reason, quarantine_marks.c.receipt)
    .where(quarantine_marks.c.digest == bindparam("digest"), quarantine_marks.c.lifted.is_(None))
    .order_by(_NEWEST_LAST)
    .limit(1)
)


@dataclass(frozen=True)
class Mark:
    """One mark.

    Attributes:
        digest: the marked tree.
        receipt: digest of the receipt of the event that marked it.
        reason: in words.
        marked: UTC, ISO 8601.
        lifted: UTC, ISO 8601; None while the mark stands.
        lift_receipt: digest of the receipt that lifted it.
        lift_reason: in a person's words.
    """

    digest: Digest
    receipt: Digest
    reason: str
    marked: str
    lifted: str | None = None
    lift_receipt: Digest | None = None
    lift_reason: str | None = None


class Quarantine:
    """The table of marks."""

    def __init__(self, database: Database) -> None:
        """Keep the marks in `database`."""
        self._database = database

    def mark(self, digest: Digest, receipt: Digest, reason: str) -> None:
        """Put the tree under quarantine; the same receipt marks it once, also after the mark was lifted."""
        with self._database.write() as connection:
            one_writer(connection, quarantine_marks)
            if receipt in {mark.receipt for mark in _marks(connection, digest)}:
                return
            values = {"digest": digest, "receipt": receipt, "reason": reason, "marked": _now()}
            connection.execute(quarantine_marks.insert().values(values))
            retire(connection, [digest], Tombstone.QUARANTINED)

    def lift(self, digest: Digest, receipt: Digest, reason: str) -> None:
        """Lift every mark of the tree.

        Args:
            digest: the marked tree.
            receipt: digest of the signed receipt that lifts it.
            reason: in a person's words.

        Raises:
            UnknownNameError: the tree is not under quarantine.
        """
        values = {"lifted": _now(), "lift_receipt": receipt, "lift_reason": reason}
        standing = (quarantine_marks.c.digest == digest, quarantine_marks.c.lifted.is_(None))
        with self._database.write() as connection:
            one_writer(connection, quarantine_marks)
            if connection.execute(update(quarantine_marks).where(*standing).values(values)).rowcount == 0:
                raise UnknownNameError(f"{digest} is not under quarantine; see 'ftpipeline quarantine list'")
            revive(connection, digest, Tombstone.QUARANTINED)

    def check(self, digest: Digest) -> None:
        """Refuse a tree under quarantine.

        Raises:
            QuarantinedError: it is; the error names digest and reason.
        """
        with self._database.read() as connection:
            refuse_marked(connection, digest)

    def marks(self, digest: Digest | None = None) -> list[Mark]:
        """Return the marks of one tree, or of all, lifted ones too, newest last."""
        with self._database.read() as connection:
            return _marks(connection, digest)


def refuse_marked(connection: Connection, digest: Digest) -> None:
    """Refuse a tree under quarantine inside the caller's transaction.

    Raises:
        QuarantinedError: it is; the error names digest and reason.
    """
    mark = connection.execute(_STANDING, {"digest": digest}).first()
    if mark is not None:
        raise QuarantinedError(digest, f"{mark.reason}; receipt {mark.receipt}")


def _marks(connection: Connection, digest: Digest | None) -> list[Mark]:
    query = select(quarantine_marks).order_by(_NEWEST_LAST)
    if digest is not None:
        query = query.where(quarantine_marks.c.digest == digest)
    return [_mark(row) for row in connection.execute(query)]


def _mark(row: Row[Any]) -> Mark:
    return Mark(row.digest, row.receipt, row.reason, row.marked, row.lifted, row.lift_receipt, row.lift_reason)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
