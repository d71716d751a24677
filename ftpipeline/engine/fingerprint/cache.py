"""Facts of files, kept by content: in the process, and on a shelf in one document for all files of a set of roots."""

from typing import Any

from ftpipeline.engine.fingerprint.disk import Disk
from ftpipeline.engine.fingerprint.facts import FileFacts, read_facts
from ftpipeline.engine.fingerprint.shelf import Shelf

_facts: dict[str, FileFacts | None] = {}


class FactsCache:
    """Reads source files through a disk, each content once."""

    def __init__(self, disk: Disk, shelf: Shelf, key: str) -> None:
        """Take from the shelf what another process has read for the same roots; `key` names the document."""
        self._disk = disk
        self._shelf = shelf
        self._key = key
        self._kept: dict[str, Any] = shelf.load(key) or {}
        self._used: dict[str, FileFacts] = {}

    def facts(self, path: str) -> FileFacts | None:
        """Return the facts of a file; None if it is no Python source, so that only its bytes tell what it is."""
        digest = self._disk.digest(path)
        if not path.endswith(".py"):
            return None
        if digest not in _facts and digest in self._kept:
            _facts[digest] = FileFacts.from_row(self._kept[digest])
        if digest not in _facts:
            source = self._disk.read(path)
            digest = self._disk.files[path]  # the file may just have changed
            _facts[digest] = _read(source)
        facts = _facts[digest]
        if facts is not None:
            self._used[digest] = facts
        return facts

    def save(self) -> None:
        """Keep the facts that were used, if there are new ones among them.

        Raises:
            StoreError: the cache folder cannot be written.
        """
        if not self._used.keys() <= self._kept.keys():
            self._shelf.save(self._key, {digest: facts.to_row() for digest, facts in self._used.items()})


def _read(source: bytes) -> FileFacts | None:
    try:
        return read_facts(source)
    except (SyntaxError, ValueError):  # a template that only looks like Python counts by its bytes
        return None
