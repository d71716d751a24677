"""Quarantine of job attempts: a mark on the digest that stands for the attempt (contract C10).

A mark on a checkpoint's tree bars that checkpoint; a mark on an attempt bars everything that the attempt saved.
"""

from collections.abc import Collection

from sqlalchemy import Connection, select, text

from ftpipeline.digest import Digest, of_json, parse
from ftpipeline.store.quarantine import refuse_marked
from ftpipeline.store.tables import quarantine_marks


def attempt_digest(job_id: str, attempt: int) -> Digest:
    """Return the digest that is marked when an attempt is under quarantine."""
    return of_json({"type": "ftpipeline.job_attempt", "job_id": job_id, "attempt": attempt})


def refuse_quarantined(
    connection: Connection, tree: Digest, job_id: str, attempt: int, despite: Collection[str] = ()
) -> None:
    """Refuse a checkpoint that is under quarantine, by itself or with its attempt; the answer holds until the commit.

    Args:
        connection: of the transaction.
        tree: the checkpoint.
        job_id: the job that saved it.
        attempt: the attempt that did.
        despite: receipts whose marks do not count.

    Raises:
        QuarantinedError: it is; the error names digest and reason.
    """
    hold_marks(connection)
    for digest in (tree, attempt_digest(job_id, attempt)):
        if not despite or marking(connection, digest) - {*despite}:
            refuse_marked(connection, digest)


def marking(connection: Connection, digest: Digest) -> set[Digest]:
    """Return the receipts whose marks on a digest stand."""
    standing = (quarantine_marks.c.digest == digest, quarantine_marks.c.lifted.is_(None))
    return {parse(receipt) for receipt in connection.scalars(select(quarantine_marks.c.receipt).where(*standing))}


def refuse_attempt(connection: Connection, job_id: str, attempt: int) -> None:
    """Refuse an attempt under quarantine.

    Raises:
        QuarantinedError: it is; the error names the reason.
    """
    hold_marks(connection)
    refuse_marked(connection, attempt_digest(job_id, attempt))


def hold_marks(connection: Connection) -> None:
    """Let no mark be written until the transaction ends, so that it comes before what is read or after the commit."""
    if connection.dialect.name == "postgresql":  # on SQLite, a writing transaction is alone anyway
        connection.execute(text(f"LOCK TABLE {quarantine_marks.name} IN SHARE MODE"))
