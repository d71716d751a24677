"""Folders as content-addressed trees (contract C2); their format stands in `ftpipeline.tree_format`.

Laws: a folder put and checked out has the same files; equal files give the equal digest, whatever the order they were
made in.
"""

import os
import secrets
import shutil
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ftpipeline.digest import Digest, of_bytes, of_file, parse
from ftpipeline.errors import CorruptArtifactError, StoreError, TreeError, UnknownNameError
from ftpipeline.store.port import Blobs, Dependants, no_dependants
from ftpipeline.tree_format import TreeEntry, decode, encode
from ftpipeline.tree_names import check_names

__all__ = ["TreeEntry", "Trees", "scan", "tree_digest"]


def scan(folder: Path) -> list[str]:
    """Return the posix paths of the folder's files, relative to it and sorted.

    Raises:
        TreeError: it is no folder, or holds what a tree cannot: a link, a special file, a name that collides.
        StoreError: it could not be listed.
    """
    if not folder.is_dir():
        raise TreeError(f"{str(folder)!r} is not a folder; give the folder that holds the artifact's files")
    try:
        paths = sorted(_walk(folder, ""))
    except OSError as error:
        raise StoreError(f"folder {str(folder)!r} cannot be listed ({error.strerror}); make it readable") from error
    check_names(paths)
    return paths


def tree_digest(folder: Path) -> Digest:
    """Return the digest that `Trees.put` would return, and store nothing.

    Raises:
        TreeError: the folder cannot be a tree.
        StoreError: it could not be read.
    """
    paths = scan(folder)
    try:
        entries = [TreeEntry(path, (folder / path).stat().st_size, of_file(folder / path)) for path in paths]
    except OSError as error:
        raise StoreError(f"folder {str(folder)!r} cannot be read ({error.strerror}); make it readable") from error
    return of_bytes(encode(entries))


class Trees:
    """Trees kept in a blob store."""

    def __init__(self, blobs: Blobs, dependants: Dependants = no_dependants) -> None:
        """Keep trees in `blobs`.

        Args:
            blobs: holds the trees and their members.
            dependants: asked who needs a tree of which a member is corrupt.
        """
        self._blobs = blobs
        self._dependants = dependants

    def put(self, folder: Path) -> Digest:
        """Store the folder's files, then the tree that lists them: a visible tree has all its members.

        Raises:
            TreeError: the folder cannot be a tree; nothing was stored.
            StoreError: a file could not be read or stored; no tree is visible.
        """
        entries = []
        for path in scan(folder):
            digest, size = self._blobs.put_file(folder / path)
            entries.append(TreeEntry(path, size, digest))
        return self._blobs.put_bytes(encode(entries))

    def entries(self, digest: Digest) -> tuple[TreeEntry, ...]:
        """Return the tree's files, sorted by path.

        Raises:
            CorruptArtifactError: the tree's blob is missing or altered.
            TreeError: the blob is sound but lists what a tree may not hold.
        """
        return decode(digest, self._blobs.read_bytes(digest))

    def checkout(self, digest: Digest, target: Path) -> None:
        """Make the verified tree appear as the folder `target`, whole or not at all.

        Args:
            digest: of the tree.
            target: a folder that does not exist yet, or is empty; its files are read-only.

        Raises:
            CorruptArtifactError: the tree or a member is missing or altered.
            StoreError: `target` holds something, or could not be written.
        """
        entries = self.entries(digest)
        partial = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            partial.mkdir(parents=True)
            with self._member_of(digest):
                self._fill(partial, entries)
            os.rename(partial, target)  # replaces an empty folder, and nothing else
        except OSError as error:
            raise StoreError(
                f"tree {digest} cannot be checked out to {str(target)!r} ({error.strerror}); give a new or empty folder"
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # already moved away unless something failed

    def read(self, digest: Digest, name: str) -> bytes:
        """Return the verified bytes of the tree's file `name`.

        Raises:
            UnknownNameError: the tree has no such file.
            CorruptArtifactError: the tree or the file is missing or altered.
        """
        for entry in self.entries(digest):
            if entry.path == name:
                with self._member_of(digest):
                    return self._blobs.read_bytes(entry.sha256)
        raise UnknownNameError(f"tree {digest} holds no file {name!r}; list its files with 'ftpipeline lineage'")

    def is_present(self, digest: Digest) -> bool:
        """Tell whether the tree and all its members are stored with the right sizes; members are not hashed.

        Raises:
            CorruptArtifactError: the tree's blob, which is read to know the members, is altered.
            TreeError: the blob is sound but is no tree.
        """
        if self._blobs.size(digest) is None:
            return False
        return all(self._blobs.size(entry.sha256) == entry.size for entry in self.entries(digest))

    def stamp(self, digest: Digest) -> tuple[Hashable, ...] | None:
        """Return what differs once a member was touched; None where nothing tells. The tree itself is hashed.

        Raises:
            CorruptArtifactError: the tree's blob is missing or altered.
            TreeError: the blob is sound but is no tree.
        """
        stamps = tuple(self._blobs.stamp(entry.sha256) for entry in self.entries(digest))
        return None if None in stamps else stamps

    def verify(self, digest: Digest) -> None:
        """Hash the tree and every member.

        Raises:
            CorruptArtifactError: something is missing or altered, or a size is not the one the tree lists.
            TreeError: the blob is sound but is no tree.
        """
        with self._member_of(digest):
            for entry in self.entries(digest):
                self._blobs.verify(entry.sha256)
                if self._blobs.size(entry.sha256) != entry.size:
                    raise CorruptArtifactError(digest, f"wrong about the size of {entry.path!r}")

    def _fill(self, folder: Path, entries: Sequence[TreeEntry]) -> None:
        for entry in entries:
            target = folder / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            self._blobs.checkout(entry.sha256, target)

    @contextmanager
    def _member_of(self, tree: Digest) -> Iterator[None]:
        """Add the tree, and who needs it, to the dependants of a member that does not verify."""
        try:
            yield
        except CorruptArtifactError as error:
            if error.digest == tree:
                raise
            needed_by = dict.fromkeys((tree, *self._dependants(tree), *error.dependants))
            raise self._blobs.corrupt(parse(error.digest), tuple(needed_by)) from error


def _walk(folder: Path, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as found:
        for item in found:
            path = f"{prefix}{item.name}"
            if item.is_symlink():
                raise TreeError(f"{path!r} in {str(folder)!r} is a link; put the file itself there")
            if item.is_dir(follow_symlinks=False):
                yield from _walk(folder / item.name, f"{path}/")
            elif item.is_file(follow_symlinks=False):
                yield path
            else:
                raise TreeError(f"{path!r} in {str(folder)!r} is not a regular file; remove it")
