"""Files and folders that are still there after a power cut: the primitives of the blob store's write protocol."""

import errno
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ftpipeline.digest import Digest

CHUNK = 1 << 20
"""Bytes read at a time, so that memory stays bounded whatever the size of a file."""

_READ_ONLY = 0o444
_NO_HARD_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}


def chunks_of(path: Path) -> Iterator[bytes]:
    """Yield the file's bytes in order, at most `CHUNK` at a time."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def write_new(path: Path, chunks: Iterable[bytes]) -> tuple[Digest, int]:
    """Write a read-only file that does not exist yet, hashing on the way, and wait until the disk has it.

    Returns:
        The digest and the size in bytes of what was written.

    Raises:
        FileExistsError: something stands at `path` already; it is left as it is.
        OSError: the bytes could not be written; what was written of them is removed.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _READ_ONLY)
    try:
        with open(descriptor, "wb") as file:
            hasher, size = hashlib.sha256(), 0
            for chunk in chunks:
                hasher.update(chunk)
                size += file.write(chunk)
            file.flush()
            os.fchmod(descriptor, _READ_ONLY)  # the umask may have taken bits away
            os.fsync(descriptor)
    except BaseException:
        path.unlink()
        raise
    return Digest(f"sha256:{hasher.hexdigest()}"), size


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Yield a new name beside `path`, to be written and then given that name; it is gone afterwards.

    What the caller published is known to the disk at the end.
    """
    name = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        yield name
    finally:
        name.unlink(missing_ok=True)
    sync_folder(path.parent)


def link(source: Path, target: Path) -> bool:
    """Link the file `source` to the new name `target`; tell whether links are possible between the two.

    Raises:
        FileExistsError: the name is taken.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return False
    return True


def publish(staged: Path, final: Path) -> None:
    """Give `staged` its final name, unless that is taken; afterwards `staged` may be there still.

    Raises:
        FileExistsError: the name is taken.
    """
    if link(staged, final):
        return
    if final.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(final))
    # Content addressing makes this safe: a writer between the check and the rename can only have put the same bytes.
    os.rename(staged, final)


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing ancestors, each made known to the disk by its parent."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's list of names."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def shared_turn(folder: Path) -> Iterator[None]:
    """Publish names in `folder` beside others who do, and never while somebody has `sole_turn`."""
    with _locked(folder, fcntl.LOCK_SH):
        yield


@contextmanager
def sole_turn(folder: Path) -> Iterator[None]:
    """Remove names from `folder` while nobody publishes in it."""
    with _locked(folder, fcntl.LOCK_EX):
        yield


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)
