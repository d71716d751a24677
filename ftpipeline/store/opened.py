"""A home's open parts."""

import os
from dataclasses import dataclass
from pathlib import Path

from ftpipeline.errors import StoreError
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.cache import CachedBlobs
from ftpipeline.store.database import Database
from ftpipeline.store.eval_sets import EvalSetVersions
from ftpipeline.store.home import Home
from ftpipeline.store.leases import Leases
from ftpipeline.store.pointers import Pointers
from ftpipeline.store.port import Blobs
from ftpipeline.store.quarantine import Quarantine
from ftpipeline.store.remote import RemoteObjects
from ftpipeline.store.results import StepResults
from ftpipeline.store.tombstones import ErasedBlobs
from ftpipeline.store.trees import Trees
from ftpipeline.store.upkeep import LocalUpkeep, Upkeep

_ANOTHER_HOME = "name another one with --home, FTPIPELINE_HOME or FTPIPELINE_STORE"


@dataclass(frozen=True)
class Store:
    """The open parts of a home."""

    home: Home
    blobs: Blobs
    upkeep: Upkeep
    trees: Trees
    database: Database
    results: StepResults
    pointers: Pointers
    eval_sets: EvalSetVersions
    leases: Leases
    quarantine: Quarantine
    erased: ErasedBlobs

    def close(self) -> None:
        """Close the database's connections."""
        self.database.close()


def open_home(home: Home, *, create: bool = True) -> Store:
    """Create what is missing of a home and open everything.

    Args:
        home: where everything is.
        create: make what is missing; if false, refuse a home that was never opened, and make nothing.

    Raises:
        StoreError: the home or the store cannot be written, or the object store cannot be reached.
        DatabaseError: the database cannot be opened.
    """
    if create:
        for folder in (home.root, home.scratch):
            _make_writable(folder)
    elif not home.is_there:
        raise StoreError(f"folder {str(home.root)!r} is no home: it holds no database; {_ANOTHER_HOME}")
    remote = None if home.remote_url is None else RemoteObjects.connect(home.remote_url)
    database = Database.open(home.database_url, create=create)
    results, erased = StepResults(database), ErasedBlobs(database)
    local = LocalBlobs(home.store_root, results.dependants, erased.absence)
    blobs = local if remote is None else _through_cache(home, remote, results, erased)
    return Store(
        home=home,
        blobs=blobs,
        upkeep=LocalUpkeep(local) if remote is None else remote,
        trees=Trees(blobs, results.dependants),
        database=database,
        results=results,
        pointers=Pointers(database),
        eval_sets=EvalSetVersions(database),
        leases=Leases(database),
        quarantine=Quarantine(database),
        erased=erased,
    )


def _through_cache(home: Home, remote: RemoteObjects, results: StepResults, erased: ErasedBlobs) -> CachedBlobs:
    return CachedBlobs(remote, LocalBlobs(home.store_root), home.cache_limit, results.dependants, erased.absence)


def _make_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"folder {str(folder)!r} cannot be made ({error.strerror}); {_ANOTHER_HOME}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"folder {str(folder)!r} is not writable; {_ANOTHER_HOME}")
