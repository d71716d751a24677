"""Verification is spared only where nothing could have changed."""

import os
from pathlib import Path

import pytest

from ftpipeline.digest import Digest
from ftpipeline.errors import CorruptArtifactError
from ftpipeline.registry.verified import VerifiedTrees
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.trees import Trees
from ftpipeline_tests.store.rows import put_tree


class CountingBlobs(LocalBlobs):
    """Counts what is hashed."""

    hashed = 0

    def verify(self, digest: Digest) -> None:
        self.hashed += 1
        super().verify(digest)


@pytest.fixture
def blobs(tmp_path: Path) -> CountingBlobs:
    return CountingBlobs(tmp_path / "store")


def member(blobs: LocalBlobs, tree: Digest) -> Path:
    (entry,) = Trees(blobs).entries(tree)
    return blobs.path(entry.sha256)


def test_a_tree_that_verified_is_not_hashed_again(blobs: CountingBlobs) -> None:
    tree, verified = put_tree(Trees(blobs), weights=b"weights"), VerifiedTrees(Trees(blobs))
    for _ in range(3):
        verified.verify(tree)
    assert blobs.hashed == 1


def test_a_file_that_was_touched_is_hashed_again(blobs: CountingBlobs) -> None:
    tree, verified = put_tree(Trees(blobs), weights=b"weights"), VerifiedTrees(Trees(blobs))
    verified.verify(tree)
    os.utime(member(blobs, tree))
    verified.verify(tree)
    assert blobs.hashed == 2


def test_an_edit_whose_author_put_size_and_time_back_is_found(blobs: CountingBlobs) -> None:
    tree, verified = put_tree(Trees(blobs), weights=b"weights"), VerifiedTrees(Trees(blobs))
    verified.verify(tree)
    file = member(blobs, tree)
    times = file.stat()
    file.chmod(0o600)
    file.write_bytes(b"WEIGHTS")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    for _ in range(2):
        with pytest.raises(CorruptArtifactError):
            verified.verify(tree)


def test_a_file_that_is_gone_is_found(blobs: CountingBlobs) -> None:
    tree, verified = put_tree(Trees(blobs), weights=b"weights"), VerifiedTrees(Trees(blobs))
    verified.verify(tree)
    member(blobs, tree).unlink()
    with pytest.raises(CorruptArtifactError):
        verified.verify(tree)


def test_a_store_without_stamps_is_hashed_every_time(tmp_path: Path) -> None:
    class Unstamped(CountingBlobs):
        def stamp(self, digest: Digest) -> None:
            return None

    blobs = Unstamped(tmp_path / "store")
    tree, verified = put_tree(Trees(blobs), weights=b"weights"), VerifiedTrees(Trees(blobs))
    for _ in range(2):
        verified.verify(tree)
    assert blobs.hashed == 2
