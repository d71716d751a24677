"""Garbage collection: removes what no root reaches and nobody touched for a grace period.

Laws: no object that a root reaches is removed, nor one that is put, nor one of a result that is used, while the
collection runs; whatever moment it dies at, the store is sound. Three things make it so. Results are set aside in the
transaction that read the roots, so that a hit either renewed a result before (and it is kept) or misses it afterwards.
Putting an object that stands already makes it young, and an object's age is looked at again, under a lock, when it is
removed. And the grace period covers the time between a put and the row that points to it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from ftpipeline.digest import Digest, parse
from ftpipeline.errors import InputError
from ftpipeline.store.blobs import STAGING
from ftpipeline.store.database import one_writer
from ftpipeline.store.opened import Store
from ftpipeline.store.reach import Roots, made_from, roots_of, with_members
from ftpipeline.store.results import utc_text
from ftpipeline.store.tables import step_results
from ftpipeline.store.tombstones import Tombstone, retire
from ftpipeline.store.upkeep import StoredObject, sweep


@dataclass(frozen=True)
class Collected:
    """What was removed, or would be.

    Attributes:
        objects: number of objects.
        freed: bytes of objects.
        results: step results that stand for their keys no more.
        swept: bytes of abandoned staging files and workspaces.
    """

    objects: int
    freed: int
    results: int
    swept: int


def collect(store: Store, sources: Iterable[Roots], grace: timedelta, now: datetime, *, dry_run: bool) -> Collected:
    """Remove what is not reached and older than the grace period.

    Args:
        store: the open store.
        sources: who names the roots.
        grace: how long an untouched object or result is kept whatever happens.
        now: the time, with its zone.
        dry_run: remove nothing, only count.

    Raises:
        InputError: the grace period is too short for work in progress.
        CorruptArtifactError: a tree that must be kept is altered; nothing was removed.
        StoreError: something could not be removed; what was removed was garbage.
    """
    shortest = store.upkeep.shortest_grace
    if grace < shortest:
        hours = shortest.total_seconds() / 3600
        raise InputError(f"a grace period of {grace} is too short for work in progress; give {hours:g} hours or more")
    before = now - grace
    kept, results = _keep(store, sources, before, dry_run)
    stored = {item.digest: item for item in store.upkeep.objects()}
    needed = with_members(store.trees, kept, stored)
    garbage = [item for digest, item in stored.items() if digest not in needed and item.modified < before]
    removed = garbage if dry_run else [item for item in garbage if store.upkeep.remove(item.digest, before)]
    return Collected(len(removed), _bytes(removed), results, _sweep(store, before, dry_run))


def _keep(store: Store, sources: Iterable[Roots], before: datetime, dry_run: bool) -> tuple[set[Digest], int]:
    """Return what must be kept, and set aside the results that are not among it."""
    if dry_run:
        with store.database.read() as connection:
            kept = _reached(connection, sources, before)
            return kept, len(_standing(connection) - kept)
    with store.database.write() as connection:
        one_writer(connection, step_results)
        kept = _reached(connection, sources, before)
        return kept, retire(connection, _standing(connection) - kept, Tombstone.COLLECTED)


def _reached(connection: Connection, sources: Iterable[Roots], before: datetime) -> set[Digest]:
    in_use = select(step_results.c.output).where(step_results.c.used >= utc_text(before))
    roots = roots_of(connection, sources) | {parse(digest) for digest in connection.scalars(in_use)}
    return made_from(connection, roots)


def _standing(connection: Connection) -> set[Digest]:
    outputs = select(step_results.c.output).where(step_results.c.tombstone.is_(None))
    return {parse(digest) for digest in connection.scalars(outputs)}


def _bytes(items: Iterable[StoredObject]) -> int:
    return sum(item.size for item in items)


def _sweep(store: Store, before: datetime, dry_run: bool) -> int:
    folders = (store.home.store_root / STAGING, store.home.scratch)
    return sum(sweep(folder, before, dry_run) for folder in folders)
