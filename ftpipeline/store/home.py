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
from pathlib import Path
from typing import TYPE_CHECKING

from ftpipeline.errors import StoreError

if TYPE_CHECKING:
    from ftpipeline.store.opened import Store

_DEFAULT = Path(".ftpipeline")
_DATABASE = "ftpipeline.db"
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
        from sqlalchemy import URL  # escapes what would mean something in a URL

        default = URL.create("sqlite", database=str(self.root / _DATABASE))
        return os.environ.get("FTPIPELINE_DATABASE") or default.render_as_string(hide_password=False)

    @property
    def dagster_home(self) -> Path:
        """Folder of Dagster's instance.

        Raises:
            StoreError: DAGSTER_HOME is a path that would depend on the current folder.
        """
        named = os.environ.get("DAGSTER_HOME")
        if not named:
            return self.root / "dagster"
        if not Path(named).is_absolute():
            raise StoreError(f"DAGSTER_HOME={named!r} depends on the current folder; give an absolute path")
        return Path(named)

    @property
    def is_there(self) -> bool:
        """Whether the home was opened before; taken for granted where its rows are kept elsewhere."""
        return bool(os.environ.get("FTPIPELINE_DATABASE")) or (self.root / _DATABASE).is_file()

    def open(self, *, create: bool = True) -> "Store":
        """Open everything.

        Args:
            create: make what is missing; if false, refuse a home that was never opened, and make nothing.

        Raises:
            StoreError: the home or the store cannot be written, or the object store cannot be reached.
            DatabaseError: the database cannot be opened.
        """
        from ftpipeline.store.opened import open_home  # with the database library, which naming a home does not need

        return open_home(self, create=create)
