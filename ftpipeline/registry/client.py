"""The registry for programs that serve: `Client.resolve(name, stage)` is a local folder with verified bytes.

Laws: every call asks the database which artifact stands and whether it is under quarantine; the folder of a digest is
made once, whole or not at all, and is hashed again only after a file of it was touched; digest, generation and folder
belong together: what is returned stood under the name at one moment, after its bytes had been verified.
"""

import os
import shutil
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ftpipeline.digest import Digest, hex_of
from ftpipeline.errors import StoreError, TreeError
from ftpipeline.registry.reader import RegistryReader
from ftpipeline.registry.records import Resolution
from ftpipeline.registry.stages import Stage
from ftpipeline.store.home import Home
from ftpipeline.store.trees import scan, tree_digest

_FOLDER = "models"
_LOOKS = 5  # at a pointer that moves while bytes are fetched


@dataclass(frozen=True)
class LocalArtifact:
    """What `name@stage` meant at one moment, as a folder.

    Attributes:
        name: registry name.
        stage: the stage.
        digest: of the artifact.
        generation: of the stage's pointer.
        folder: holds the artifact's files, read-only; it stays as it is when the pointer moves.
    """

    name: str
    stage: Stage
    digest: Digest
    generation: int
    folder: Path

    def __fspath__(self) -> str:
        return str(self.folder)


class Client:
    """Resolves names to folders, for a program that serves; may be used by several threads.

    With a remote store or database, a home on the serving machine holds the copies.
    """

    def __init__(self, home: Path | None = None, cache: Path | None = None) -> None:
        """Open a home that is there.

        Args:
            home: the home folder; None for FTPIPELINE_HOME, else `./.ftpipeline`.
            cache: folder for the artifacts' files; None for one in the home.

        Raises:
            StoreError: there is no home, or the store cannot be reached.
            DatabaseError: the database cannot be opened, or its schema is of another version.
        """
        place = Home.locate(home)
        self._store = place.open(create=False)
        self._registry = RegistryReader(self._store.database, self._store.trees)
        self._cache = (cache if cache is not None else place.cache / _FOLDER).absolute()
        self._stamps: dict[Digest, Hashable] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database's connections; folders that were handed out stay."""
        self._store.close()

    def resolve(self, name: str, stage: str) -> LocalArtifact:
        """Return the artifact that `name@stage` means now.

        Raises:
            UnknownNameError: the name or stage is unknown, or the stage is empty.
            QuarantinedError: the artifact, or something it was made from, is under quarantine.
            CorruptArtifactError: its bytes are missing or altered.
            StoreError: the folder cannot be written, or the pointer moved at every look.
        """
        found = self._registry.look_up(name, stage)
        for _ in range(_LOOKS):
            folder, is_new = self._folder(found.digest)
            if not is_new:
                return _local(found, folder)
            fetched, found = found, self._registry.look_up(name, stage)  # fetching took time
            if found == fetched:
                return _local(found, folder)
        raise StoreError(f"{name}@{stage} moved {_LOOKS} times while its bytes were fetched; resolve it again")

    def _folder(self, digest: Digest) -> tuple[Path, bool]:
        """Return the folder of an artifact, and whether time went by over its bytes."""
        folder = self._cache / hex_of(digest)
        if (known := self._stamps.get(digest)) is not None and known == _stamp(folder):
            return folder, False
        with self._lock:
            self._stamps[digest] = self._ready(digest, folder)
        return folder, True

    def _ready(self, digest: Digest, folder: Path) -> Hashable:
        """Return the stamp of a folder whose bytes were hashed, after fetching them where they do not verify."""
        for _ in range(2):
            stamp = _stamp(folder)
            if stamp is not None and tree_digest(folder) == digest and _stamp(folder) == stamp:
                return stamp
            self._fetch(digest, folder)
        raise StoreError(f"cache {str(self._cache)!r} does not keep what is put in it; check its disk")

    def _fetch(self, digest: Digest, folder: Path) -> None:
        """Check the artifact out, in place of a folder that does not hold it any more."""
        shutil.rmtree(folder, ignore_errors=True)
        try:
            self._store.trees.checkout(digest, folder)
        except StoreError:
            if _stamp(folder) is None:  # unless another process made it in between
                raise


def _local(found: Resolution, folder: Path) -> LocalArtifact:
    return LocalArtifact(found.name, found.stage, found.digest, found.generation, folder)


def _stamp(folder: Path) -> Hashable:
    """Return what differs once a file of the folder was touched; None where there is no folder that can be a tree."""
    try:
        return tuple((path, *_identity(os.stat(folder / path))) for path in scan(folder))
    except (OSError, StoreError, TreeError):
        return None


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
