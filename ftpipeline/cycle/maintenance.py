"""Maintenance of a home: which digests registry, ledger and guard need, and the two verbs over all of them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, select

from ftpipeline.digest import Digest, parse
from ftpipeline.ledger.roots import ledger_roots
from ftpipeline.registry.stages import Stage
from ftpipeline.store import fsck as checking
from ftpipeline.store import gc as collecting
from ftpipeline.store.opened import Store
from ftpipeline.store.reach import STORE_ROOTS, Roots
from ftpipeline.store.tables import (
    guard_incidents,
    production_pins,
    quarantine_marks,
    registry_entries,
    registry_history,
)

GRACE = timedelta(hours=72)
"""Longer than a week's run takes, shorter than the time between two of them."""

_EVIDENCE = ("manifest", "base_model", "report", "gate")


def registry_roots(connection: Connection) -> set[Digest]:
    """Return what any entry, in whatever stage, was registered or moved with, and what a run was pinned to.

    Entries are never forgotten, so the production before the current one, which a rollback returns to, is among them;
    of an entry that was deleted, all but the artifact.
    """
    columns = [
        *(registry_entries.c[name] for name in _EVIDENCE),
        registry_history.c.receipt,
        production_pins.c.digest,
    ]
    queries = [select(column).where(column.is_not(None)) for column in columns]
    queries.append(select(registry_entries.c.artifact).where(registry_entries.c.stage != Stage.DELETED))
    return {parse(digest) for query in queries for digest in connection.scalars(query)}


def guard_roots(connection: Connection) -> set[Digest]:
    """Return the receipts of incidents, and those that lifted a mark."""
    receipts = [guard_incidents.c[name] for name in ("divergence", "planned", "executed")]
    columns = [*receipts, quarantine_marks.c.lift_receipt]
    queries = [select(column).where(column.is_not(None)) for column in columns]
    return {parse(digest) for query in queries for digest in connection.scalars(query)}


ROOTS: tuple[Roots, ...] = (*STORE_ROOTS, registry_roots, ledger_roots, guard_roots)
"""Everything that keeps digests in the database."""


def fsck(store: Store) -> checking.Report:
    """Hash every object of a home, follow every row, and move altered bytes aside.

    Raises:
        StoreError: the store cannot be read, or bytes cannot be moved aside.
    """
    return checking.check(store, ROOTS)


def gc(
    store: Store, grace: timedelta = GRACE, *, dry_run: bool = False, roots: Iterable[Roots] = ROOTS
) -> collecting.Collected:
    """Remove what nothing reaches and nobody touched for the grace period.

    Args:
        store: the open store.
        grace: how long an untouched object or result is kept whatever happens.
        dry_run: remove nothing, only count.
        roots: who names the digests to keep.

    Raises:
        InputError: the grace period is too short for work in progress.
        CorruptArtifactError: a tree that must be kept is altered; nothing was removed.
        StoreError: something could not be removed.
    """
    return collecting.collect(store, roots, grace, datetime.now(UTC), dry_run=dry_run)
