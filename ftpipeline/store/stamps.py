"""Verification stamps: a memo hit hashes nothing that was not touched since it was hashed (contract C4).

A stamp is what the disk says of an object's file: its inode, size and times. Beside those of a tree and its members at
the moment they verified, a hit only has to look again. Law: what was edited, replaced or truncated in between is hashed
before it counts as whole. The notes can be found out again: one that is absent, torn or old costs a hash.
"""

import json
import os
import tempfile
from pathlib import Path

from ftpipeline.digest import Digest, hex_of
from ftpipeline.errors import StoreError
from ftpipeline.store.port import Blobs
from ftpipeline.store.trees import Trees

_FOLDER = "verified"
_VERSION = 1


class VerificationStamps:
    """What this home's trees looked like when they verified."""

    def __init__(self, blobs: Blobs, trees: Trees, folder: Path) -> None:
        """Look at `trees` in `blobs`, and keep notes below `folder`."""
        self._blobs = blobs
        self._trees = trees
        self._folder = folder / _FOLDER

    def is_whole(self, tree: Digest) -> bool:
        """Tell whether the tree and all its members are stored with the right sizes, hashing what was touched.

        A blob store that has no stamps is asked for the sizes alone.

        Raises:
            CorruptArtifactError: something of it is altered.
            TreeError: the blob is sound but is no tree.
            StoreError: the note cannot be written.
        """
        note = self._load(tree)
        if note is not None and all(self._stamp(blob) == stamp for blob, stamp in note.items()):
            return True
        if not self._trees.is_present(tree):
            return False
        before = self._stamps(tree)
        if None in before.values():
            return True
        self._trees.verify(tree)
        if self._stamps(tree) == before:  # nobody touched it while it was hashed
            self._save(tree, before)
        return True

    def _stamps(self, tree: Digest) -> dict[str, str | None]:
        blobs = [tree, *(entry.sha256 for entry in self._trees.entries(tree))]
        return {blob: self._stamp(blob) for blob in blobs}

    def _stamp(self, blob: str) -> str | None:
        stamp = self._blobs.stamp(Digest(blob))
        return None if stamp is None else repr(stamp)

    def _load(self, tree: Digest) -> dict[str, str] | None:
        try:
            note = json.loads(self._path(tree).read_bytes())
        except (OSError, ValueError):  # absent, not for us to read, or torn: it is found out again
            return None
        is_note = isinstance(note, dict) and note.get("version") == _VERSION and note.get("tree") == tree
        return note["stamps"] if is_note else None

    def _save(self, tree: Digest, stamps: dict[str, str | None]) -> None:
        path = self._path(tree)
        note = json.dumps({"version": _VERSION, "tree": tree, "stamps": stamps})
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(note)
            os.replace(temporary, path)
        except OSError as error:
            raise StoreError(
                f"note {str(path)!r} cannot be written ({error.strerror}); free space or permit it"
            ) from error

    def _path(self, tree: Digest) -> Path:
        name = hex_of(tree)
        return self._folder / name[:2] / f"{name}.json"
