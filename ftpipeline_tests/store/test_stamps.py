"""Verification stamps: what was touched is hashed again, what was not is only looked at."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ftpipeline.digest import Digest
from ftpipeline.errors import CorruptArtifactError
from ftpipeline.store.opened import Store
from ftpipeline.store.stamps import VerificationStamps
from ftpipeline_tests.store.damage import flip_a_bit, lose, object_path, overwrite, truncate


@pytest.fixture
def tree(store: Store, tmp_path: Path) -> Digest:
    folder = tmp_path / "artifact"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(b"weights" * 100)
    (folder / "config.json").write_bytes(b"{}")
    return store.trees.put(folder)


def stamps_of(store: Store) -> VerificationStamps:
    return VerificationStamps(store.blobs, store.trees, store.home.cache)


def weights_of(store: Store, tree: Digest) -> Digest:
    return next(entry.sha256 for entry in store.trees.entries(tree) if entry.path == "weights.bin")


def notes(store: Store) -> list[Path]:
    return list((store.home.cache / "verified").rglob("*.json"))


def forbid_reading(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an object was read")

    monkeypatch.setattr(type(store.blobs), "read_bytes", refuse)
    monkeypatch.setattr(type(store.blobs), "verify", refuse)


def test_what_verified_and_was_not_touched_is_read_no_more(
    store: Store, tree: Digest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stamps_of(store).is_whole(tree)
    forbid_reading(store, monkeypatch)
    assert stamps_of(store).is_whole(tree)  # another process reads the same note


def test_a_bit_flipped_before_the_first_look_is_found(store: Store, tree: Digest) -> None:
    flip_a_bit(store, weights_of(store, tree))
    with pytest.raises(CorruptArtifactError, match="altered"):
        stamps_of(store).is_whole(tree)


@pytest.mark.parametrize("member", [True, False])
def test_a_bit_flipped_since_is_found(store: Store, tree: Digest, member: bool) -> None:
    stamps = stamps_of(store)
    assert stamps.is_whole(tree)
    flip_a_bit(store, weights_of(store, tree) if member else tree)
    with pytest.raises(CorruptArtifactError, match="altered"):
        stamps.is_whole(tree)


def test_a_bit_flipped_by_somebody_who_puts_the_times_back_is_found(store: Store, tree: Digest) -> None:
    stamps, weights = stamps_of(store), weights_of(store, tree)
    assert stamps.is_whole(tree)
    before = object_path(store, weights).stat()
    flip_a_bit(store, weights)
    os.utime(object_path(store, weights), ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CorruptArtifactError, match="altered"):
        stamps.is_whole(tree)


@pytest.mark.parametrize("damage", [lose, truncate])
def test_what_is_missing_or_of_another_size_is_not_whole(
    store: Store, tree: Digest, damage: Callable[[Store, Digest], None]
) -> None:
    stamps = stamps_of(store)
    assert stamps.is_whole(tree)
    damage(store, weights_of(store, tree))
    assert not stamps.is_whole(tree)


def test_the_same_bytes_put_again_count_as_whole(store: Store, tree: Digest, tmp_path: Path) -> None:
    stamps = stamps_of(store)
    assert stamps.is_whole(tree)
    assert store.trees.put(tmp_path / "artifact") == tree
    assert stamps.is_whole(tree)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}', b"\xff"])
def test_a_torn_note_costs_a_hash_and_hides_nothing(store: Store, tree: Digest, content: bytes) -> None:
    stamps = stamps_of(store)
    assert stamps.is_whole(tree)
    (note,) = notes(store)
    overwrite(note, content)
    assert stamps.is_whole(tree)
    flip_a_bit(store, weights_of(store, tree))
    overwrite(note, content)
    with pytest.raises(CorruptArtifactError, match="altered"):
        stamps.is_whole(tree)
