"""Folders of one call's own."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ftpipeline.errors import StoreError


@contextmanager
def private_folder(parent: Path, prefix: str = "") -> Iterator[Path]:
    """Yield a new folder in `parent`, gone afterwards whatever happens.

    Raises:
        StoreError: it cannot be made.
    """
    folder = parent / f"{prefix}{uuid.uuid4().hex}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise StoreError(f"{parent}: cannot be written ({error.strerror}); free space or permit it") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
