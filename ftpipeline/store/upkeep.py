"""What only gc and fsck may do to stored objects: list, hash, move aside, remove."""

import hashlib
import os
import re
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_ISREG

from ftpipeline.digest import Digest, hex_of
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.durable import chunks_of, make_folder, sole_turn, sync_folder

_NAME = re.compile(r"[0-9a-f]{64}")

LOOKS = 2
"""How often bytes are hashed before they are called bad: a second look tells them from bytes that were read badly."""


@dataclass(frozen=True)
class StoredObject:
    """One object as it is listed.

    Attributes:
        digest: the name it is stored under.
        size: in bytes.
        modified: when it was put, or put again.
    """

    digest: Digest
    size: int
    modified: datetime


class Upkeep(ABC):
    """Maintenance of the objects of one store."""

    shortest_grace: timedelta
    """An object younger than this may belong to work in progress that nothing points to yet."""

    @abstractmethod
    def objects(self) -> Iterator[StoredObject]:
        """Yield every object, in no order.

        Raises:
            StoreError: the store cannot be listed.
        """

    @abstractmethod
    def is_sound(self, item: StoredObject) -> bool:
        """Tell whether the stored bytes have their digest, hashing all of them, twice before saying no.

        Raises:
            StoreError: they could not be read.
        """

    @abstractmethod
    def set_aside(self, digest: Digest) -> None:
        """Move the object to `lost+found`, out of the way of the sound bytes.

        Raises:
            StoreError: it could not be moved.
        """

    @abstractmethod
    def remove(self, digest: Digest, before: datetime) -> bool:
        """Remove the object, unless it was put again since it was listed.

        Args:
            digest: the object.
            before: an object of this time or later stays.

        Returns:
            Whether it was removed.

        Raises:
            StoreError: it could not be removed.
        """


class LocalUpkeep(Upkeep):
    """Maintenance of a folder of blobs."""

    shortest_grace = timedelta(hours=2)

    def __init__(self, blobs: LocalBlobs) -> None:
        """Maintain the folder of `blobs`."""
        self._blobs = blobs

    def objects(self) -> Iterator[StoredObject]:
        """Yield every object; files of other names are not ours and are left alone."""
        with self._blobs.errors("objects cannot be listed"):
            for path in sorted(self._blobs.objects.glob("*/*")):
                if is_object_name(path.name):
                    with suppress(FileNotFoundError):  # removed by another process since it was listed
                        stat = path.stat()
                        modified = datetime.fromtimestamp(stat.st_mtime, UTC)
                        yield StoredObject(Digest(f"sha256:{path.name}"), stat.st_size, modified)

    def is_sound(self, item: StoredObject) -> bool:
        """Hash the object's file."""
        with self._blobs.errors(f"{item.digest} cannot be read"):
            return any(digest_of(chunks_of(self._blobs.path(item.digest))) == item.digest for _ in range(LOOKS))

    def set_aside(self, digest: Digest) -> None:
        """Move the object's file, in the same file system."""
        path, lost = self._blobs.path(digest), self._blobs.root / "lost+found"
        with self._blobs.errors(f"{digest} cannot be moved aside"):
            make_folder(lost)
            with sole_turn(path.parent):
                os.rename(path, lost / f"{hex_of(digest)}-{secrets.token_hex(4)}")
            sync_folder(lost)
            sync_folder(path.parent)

    def remove(self, digest: Digest, before: datetime) -> bool:
        """Unlink the object's file, while nobody puts it again."""
        path = self._blobs.path(digest)
        with self._blobs.errors(f"{digest} cannot be removed"), sole_turn(path.parent):
            if not path.exists() or path.stat().st_mtime >= before.timestamp():
                return False
            path.unlink()
            return True


def is_object_name(name: str) -> bool:
    """Tell whether a file of this name can be an object."""
    return _NAME.fullmatch(name) is not None


def digest_of(chunks: Iterable[bytes]) -> Digest:
    """Return the digest of the bytes that `chunks` yields."""
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
    return Digest(f"sha256:{hasher.hexdigest()}")


def sweep(folder: Path, before: datetime, dry_run: bool) -> int:
    """Remove what processes that died left in a folder of temporary files and folders.

    Args:
        folder: of staged files or of workspaces; may be absent.
        before: an item in which anything was changed at this time or later belongs to a process that may be alive.
        dry_run: only count.

    Returns:
        The bytes that are freed by it; a file that is also linked elsewhere frees none.
    """
    freed = 0
    for item in sorted(folder.iterdir()) if folder.is_dir() else ():
        stats = [path.lstat() for path in (item, *item.rglob("*"))]
        if max(stat.st_mtime for stat in stats) < before.timestamp():
            freed += sum(stat.st_size for stat in stats if S_ISREG(stat.st_mode) and stat.st_nlink == 1)
            if not dry_run:
                _remove(item)
    return freed


def _remove(item: Path) -> None:
    if item.is_dir() and not item.is_symlink():
        shutil.rmtree(item)
    else:
        item.unlink()
