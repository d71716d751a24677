"""Documents kept between processes, under the question that each of them answers.

What stands on a shelf can be found out again: an entry that is absent, torn or altered is made anew.
"""

import hashlib
import json
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from ftpipeline.errors import StoreError

_MOST_ENTRIES = 256
_KEPT_ENTRIES = 192


class Shelf:
    """One kind of documents in a cache folder."""

    def __init__(self, folder: Path | None, kind: str) -> None:
        """Keep documents of `kind` below `folder`; None keeps nothing."""
        self._root = folder
        self._folder = folder / _version() / kind if folder else None

    def load(self, key: str) -> Any | None:
        """Return the document kept under `key`; None if there is none that is whole."""
        if self._folder is None:
            return None
        try:
            seal, _, body = (self._folder / f"{key}.json").read_bytes().partition(b"\n")
        except OSError:  # absent, or not for us to read: it can be found out again
            return None
        return json.loads(body) if seal == _seal(key, body) else None

    def save(self, key: str, document: Any) -> None:
        """Keep a JSON document under `key`. A reader sees the old one or the new one, whoever else is writing.

        Raises:
            StoreError: the cache folder cannot be written.
        """
        if self._folder is None:
            return
        body = json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")
        try:
            _replace(self._folder / f"{key}.json", _seal(key, body) + b"\n" + body)
        except OSError as error:
            raise StoreError(
                f"cache folder {str(self._folder)!r} cannot be written ({error.strerror}); free space or permit it"
            ) from error

    def prune(self) -> None:
        """Remove the oldest entries of all kinds and versions once there are more than a few hundred."""
        if self._root is None:
            return
        entries = [path for path in self._root.rglob("*") if path.is_file()]
        if len(entries) <= _MOST_ENTRIES:
            return
        entries.sort(key=_age)
        for path in entries[:-_KEPT_ENTRIES]:
            path.unlink(missing_ok=True)


def _seal(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).hexdigest().encode()


def _replace(path: Path, content: bytes) -> None:
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def _age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # another process is pruning too
        return 0


@cache
def _version() -> str:
    """Return a name that changes with the code that makes the documents and with the interpreter that it runs in."""
    hasher = hashlib.sha256(f"{sys.version} {sys.flags.optimize}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()[:16]
