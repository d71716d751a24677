"""Verification that is not done twice: a tree is hashed again only after one of its files was touched."""

from collections.abc import Hashable

from ftpipeline.digest import Digest
from ftpipeline.store.trees import Trees


class VerifiedTrees:
    """Remembers, for this process, the stamps of the trees that verified."""

    def __init__(self, trees: Trees) -> None:
        """Verify trees of `trees`."""
        self._trees = trees
        self._stamps: dict[Digest, tuple[Hashable, ...]] = {}

    def verify(self, digest: Digest) -> None:
        """Hash the tree and its members, unless nothing of them was touched since they verified.

        Raises:
            CorruptArtifactError: something is missing or altered.
            TreeError: the blob is sound but is no tree.
        """
        stamp = self._trees.stamp(digest)
        if stamp is not None and self._stamps.get(digest) == stamp:
            return
        self._stamps.pop(digest, None)
        self._trees.verify(digest)
        if stamp is not None and self._trees.stamp(digest) == stamp:  # nobody touched it while it was hashed
            self._stamps[digest] = stamp
