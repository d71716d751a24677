"""What disks and people do to stored objects."""

import os
from datetime import datetime
from pathlib import Path

from ftpipeline.digest import Digest
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.opened import Store


def object_path(store: Store, digest: Digest) -> Path:
    """Return the file of an object in a local store."""
    assert isinstance(store.blobs, LocalBlobs)
    return store.blobs.path(digest)


def lose(store: Store, digest: Digest) -> None:
    """Let the object disappear."""
    object_path(store, digest).unlink()


def overwrite(path: Path, data: bytes) -> None:
    """Let other bytes stand in a read-only file."""
    path.chmod(0o644)
    path.write_bytes(data)


def flip_a_bit(store: Store, digest: Digest) -> None:
    """Let one bit of the object rot."""
    path = object_path(store, digest)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    overwrite(path, bytes(data))


def truncate(store: Store, digest: Digest) -> None:
    """Let the object's last byte disappear."""
    path = object_path(store, digest)
    overwrite(path, path.read_bytes()[:-1])


def age(path: Path, time: datetime) -> None:
    """Let a file, or all of a folder, have been changed last at `time`."""
    for item in (*path.rglob("*"), path):
        os.utime(item, (time.timestamp(), time.timestamp()))
