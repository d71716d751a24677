"""Files and folders as a fingerprint reads them, each noted with its content, so that the reading can be repeated."""

import hashlib
import os
from collections.abc import Mapping

from ftpipeline.engine.fingerprint.stamps import Stamp, is_unchanged, settled_stamp

_COMPILED = "__pycache__"
_digests: dict[str, tuple[Stamp, str]] = {}
_listings: dict[str, tuple[Stamp, dict[str, bool]]] = {}


class Disk:
    """What one computation reads.

    Attributes:
        files: path to digest of the bytes that were read; empty for what could not be read.
        folders: path to digest of the entries that were listed.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        self.files: dict[str, str] = {}
        self.folders: dict[str, str] = {}
        self._entries: dict[str, Mapping[str, bool]] = {}

    def read(self, path: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            OSError: it cannot be read.
        """
        stamp = settled_stamp(path)
        with open(path, "rb") as file:
            content = file.read()
        digest = self.files[path] = hashlib.sha256(content).hexdigest()
        _digests[path] = (stamp, digest)
        return content

    def digest(self, path: str) -> str:
        """Return the digest of a file's bytes, as this disk first read them; empty if they cannot be read."""
        if path not in self.files:
            known = _digests.get(path)
            if known is not None and is_unchanged(path, known[0]):
                self.files[path] = known[1]
            else:
                self._try_to_read(path)
        return self.files[path]

    def _try_to_read(self, path: str) -> None:
        try:
            self.read(path)
        except OSError:
            self.files[path] = ""

    def entries(self, folder: str) -> Mapping[str, bool]:
        """Return the names in a folder, each with whether it is a folder itself; none if there is no such folder."""
        if folder not in self._entries:
            known = _listings.get(folder)
            if known is None or not is_unchanged(folder, known[0]):
                known = _listings[folder] = (settled_stamp(folder), _list(folder))
            listed = self._entries[folder] = known[1]
            text = repr(sorted(listed.items()))
            self.folders[folder] = hashlib.sha256(text.encode("ascii", "backslashreplace")).hexdigest()
        return self._entries[folder]


def _list(folder: str) -> dict[str, bool]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_dir() for entry in entries if entry.name != _COMPILED}
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # Python's own finder passes over these too
        return {}
