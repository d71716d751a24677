"""The home folder, and everything that is kept in it or in place of it.

| what | where | replaced by |
|---|---|---|
| blobs, trees and step workspaces | `<home>/store` | FTPIPELINE_STORE, an absolute folder |
| copies of remote blobs, workspaces | `<home>/cache/blobs`, if FTPIPELINE_STORE is `s3://bucket/prefix`, gs or az | |
| rows | `<home>/ftpipeline.db` | FTPIPELINE_DATABASE, a URL |
| Dagster's instance | `<home>/dagster` | DAGSTER_HOME |
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL

from ftpipeline.errors import StoreError
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.cache import CachedBlobs
from ftpipeline.store.database import Database
from ftpipeline.store.eval_sets import EvalSetVersions
from ftpipeline.store.leases import Leases
from ftpipeline.store.pointers import Pointers
from ftpipeline.store.port import Blobs
from ftpipeline.store.quarantine import Quarantine
from ftpipeline.store.remote import RemoteObjects
from ftpipeline.store.results import StepResults
from ftpipeline.store.tombstones import ErasedBlobs
from ftpipeline.store.trees import Trees
from ftpipeline.store.upkeep import LocalUpkeep, Upkeep

_DEFAULT = Path(".ftpipeline")
_ANOTHER_HOME = "name another one with --home, FTPIPELINE_HOME or FTPIPELINE_STORE"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CACHE_GIB = "20"


class Home:
    """Where a deployment keeps its state. The folder is made absolute once and created by `open`."""

    def __init__(self, root: Path) -> None:
        """Put the home at `root`, seen from the current folder of now."""
        self.root = root.absolute()

    @classmethod
    def locate(cls, explicit: Path | None) -> "Home":
        """Return the home at `explicit`, else at FTPIPELINE_HOME, else at `./.ftpipeline`."""
        if explicit is not None:
            return cls(explicit)
        return cls(Path(os.environ.get("FTPIPELINE_HOME") or _DEFAULT))

    def __repr__(self) -> str:
        """Name the folder."""
        return f"Home({str(self.root)!r})"

    @property
    def store_root(self) -> Path:
        """Folder of the blobs, or of copies of them if the store is remote.

        Raises:
            StoreError: FTPIPELINE_STORE is a path that would depend on the current folder.
        """
        named = os.environ.get("FTPIPELINE_STORE")
        if not named:
            return self.root / "store"
        if self.remote_url is not None:
            return self.cache / "blobs"
        if not Path(named).is_absolute():
            raise StoreError(f"FTPIPELINE_STORE={named!r} depends on the current folder; give an absolute path")
        return Path(named)

    @property
    def remote_url(self) -> str | None:
        """URL of the object store that holds the blobs; None when a folder does."""
        named = os.environ.get("FTPIPELINE_STORE", "")
        return named if _URL.match(named) else None

    @property
    def cache_limit(self) -> int:
        """Bytes that copies of remote blobs may take.

        Raises:
            StoreError: FTPIPELINE_CACHE_GIB is no positive number.
        """
        named = os.environ.get("FTPIPELINE_CACHE_GIB") or _CACHE_GIB
        if not re.fullmatch(r"\d+(\.\d+)?", named) or float(named) == 0:
            raise StoreError(f"FTPIPELINE_CACHE_GIB={named!r} is no positive number; give GiB, for example 20")
        return int(float(named) * 2**30)

    @property
    def scratch(self) -> Path:
        """Folder for step workspaces, in the file system of the blobs, so that checkouts can be hard links."""
        return self.store_root / "scratch"

    @property
    def cache(self) -> Path:
        """Folder of facts that can be found out again at any time."""
        return self.root / "cache"

    @property
    def database_url(self) -> str:
        """URL of the database; it may hold a password, so it is never shown."""
        default = URL.create("sqlite", database=str(self.root / "ftpipeline.db"))
        return os.environ.get("FTPIPELINE_DATABASE") or default.render_as_string(hide_password=False)

    @property
    def dagster_home(self) -> Path:
        """Folder of Dagster's instance."""
        return Path(os.environ.get("DAGSTER_HOME") or self.root / "dagster")

    def open(self) -> "Store":
        """Create what is missing and open everything.

        Raises:
            StoreError: the home or the store cannot be written, or the object store cannot be reached.
            DatabaseError: the database cannot be opened.
        """
        for folder in (self.root, self.scratch):
            _make_writable(folder)
        remote = None if self.remote_url is None else RemoteObjects.connect(self.remote_url)
        database = Database.open(self.database_url)
        results, erased = StepResults(database), ErasedBlobs(database)
        local = LocalBlobs(self.store_root, results.dependants, erased.absence)
        blobs = local if remote is None else self._through_cache(remote, results, erased)
        return Store(
            home=self,
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

    def _through_cache(self, remote: RemoteObjects, results: StepResults, erased: ErasedBlobs) -> CachedBlobs:
        return CachedBlobs(remote, LocalBlobs(self.store_root), self.cache_limit, results.dependants, erased.absence)


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


def _make_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"folder {str(folder)!r} cannot be made ({error.strerror}); {_ANOTHER_HOME}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"folder {str(folder)!r} is not writable; {_ANOTHER_HOME}")
