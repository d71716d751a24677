"""Facts of files, kept by content: in the process by path, time and size, on disk by the digest of the file's bytes."""

import hashlib
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ftpipeline.engine.fingerprint import facts as facts_module
from ftpipeline.engine.fingerprint.facts import FileFacts, read_facts

Stamp = tuple[int, int]
"""Modification time in ns and size of a file; (-1, -1) if it is missing."""

_READERS = ("chains.py", "facts.py", "known.py", "normal.py", "scopes.py")
_MISSING: Stamp = (-1, -1)
_UNSETTLED: Stamp = (-2, -2)
_SETTLED_NS = 100_000_000  # a file system's clock may tick this coarsely: a younger file could change unnoticed


@dataclass(frozen=True)
class Remembered:
    """What is known of one file.

    Attributes:
        stamp: time and size at which it was read.
        facts: its facts; None for what is not Python source.
        digest: hexadecimal SHA-256 of its bytes.
    """

    stamp: Stamp
    facts: FileFacts | None
    digest: str


_remembered: dict[str, Remembered] = {}


def stamp_of(path: str) -> Stamp:
    """Return time and size of a file or folder."""
    try:
        status = os.stat(path)
    except OSError:
        return _MISSING
    return status.st_mtime_ns, status.st_size


def settled_stamp(path: str) -> Stamp:
    """Return the stamp of `path`; one that equals no other while the file is too young for its time to tell."""
    stamp = stamp_of(path)
    return _UNSETTLED if time.time_ns() - stamp[0] < _SETTLED_NS else stamp


def is_unchanged(path: str, stamp: Stamp) -> bool:
    """Whether `path` certainly still is what it was when its settled stamp was `stamp`."""
    return stamp != _UNSETTLED and stamp_of(path) == stamp


class FactsCache:
    """Reads files, each content once."""

    def __init__(self, folder: Path | None = None) -> None:
        """Keep facts under `folder` too, so that the next process need not parse; None keeps them in memory only."""
        self._folder = folder / _version() if folder else None

    def read(self, path: str) -> Remembered:
        """Return what is known of the file at `path`, read anew if its time or size has changed."""
        stamp = settled_stamp(path)
        known = _remembered.get(path)
        if known is None or known.stamp != stamp or stamp == _UNSETTLED:
            known = _remembered[path] = self._read(path, stamp)
        return known

    def _read(self, path: str, stamp: Stamp) -> Remembered:
        source = Path(path).read_bytes()
        digest = hashlib.sha256(source).hexdigest()
        return Remembered(stamp, self._facts(source, digest) if path.endswith(".py") else None, digest)

    def _facts(self, source: bytes, digest: str) -> FileFacts | None:
        stored = self._folder / f"{digest}.json" if self._folder else None
        if stored and (facts := _load(stored, digest)):
            return facts
        try:
            facts = read_facts(source)
        except (SyntaxError, ValueError):  # a template that only looks like Python counts by its bytes
            return None
        if stored:
            _save(stored, facts)
        return facts


def _load(path: Path, digest: str) -> FileFacts | None:
    try:
        facts = FileFacts.from_row(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):  # absent or torn: the source is there to be read again
        return None
    return facts if facts.source == digest else None


def _save(path: Path, facts: FileFacts) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(json.dumps(facts.to_row(), separators=(",", ":")))
    os.replace(temporary, path)


@cache
def _version() -> str:
    """Return a name that changes with the code that reads facts and with Python's syntax trees."""
    hasher = hashlib.sha256()
    for name in _READERS:
        hasher.update((Path(facts_module.__file__).parent / name).read_bytes())
    return f"py{sys.version_info.major}.{sys.version_info.minor}-{hasher.hexdigest()[:16]}"
