"""Key files: made whole or not at all, and private ones readable by their owner only."""

import os
from contextlib import suppress
from pathlib import Path

from ftpipeline.errors import EnvironmentProblemError
from ftpipeline.store.durable import make_folder, publish, staged

SIZE_LIMIT = 1 << 16
"""Bytes that are read of a key file; far beyond the PEM of any one key."""

_OTHERS = 0o077  # permission bits of group and world


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that does not exist yet, and wait until the disk has it.

    Raises:
        OSError: something stands there already, or it cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def keep_private(path: Path, data: bytes) -> None:
    """Write a private key with mode 0600, unless another process was first and its key stands there.

    A process that dies on the way leaves no key, and never a torn one.

    Raises:
        EnvironmentProblemError: it cannot be written.
    """
    try:
        make_folder(path.parent)
        path.parent.chmod(0o700)
        with staged(path) as new:
            write_new(new, data, mode=0o600)
            with suppress(FileExistsError):
                publish(new, path)
    except OSError as error:
        raise EnvironmentProblemError(
            f"signing key {str(path)!r} cannot be made ({error.strerror}); make its folder writable"
        ) from error


def read_private(path: Path) -> bytes:
    """Return the bytes of a private key file.

    Raises:
        EnvironmentProblemError: it cannot be read, or others may read or change it.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode  # of the very file that is read
            if mode & _OTHERS:
                raise EnvironmentProblemError(
                    f"signing key {str(path)!r} is open to others (mode {mode & 0o777:04o}); run chmod 600 on it, and "
                    "make a new one if somebody could have read it"
                )
            return file.read(SIZE_LIMIT)
    except OSError as error:
        raise EnvironmentProblemError(
            f"signing key {str(path)!r} cannot be read ({error.strerror}); check the path and its permissions"
        ) from error
