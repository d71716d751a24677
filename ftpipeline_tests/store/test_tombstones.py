from pathlib import Path

import pytest

from ftpipeline.errors import CorruptArtifactError
from ftpipeline.store.opened import Store
from ftpipeline.store.tombstones import Tombstone, retire
from ftpipeline_tests.store.damage import lose
from ftpipeline_tests.store.rows import digest, lineage, put_tree


def test_an_erased_blob_is_called_erased_and_why(store: Store, tmp_path: Path) -> None:
    tree = put_tree(store.trees, rows=b"rows")
    blob = digest("rows")
    store.erased.add(blob, "request 17")
    store.erased.add(blob, "a later request")
    lose(store, blob)
    assert store.erased.reason(blob) == "request 17"
    for look in (lambda: store.blobs.read_bytes(blob), lambda: store.trees.checkout(tree, tmp_path / "target")):
        with pytest.raises(CorruptArtifactError, match=r"is erased on purpose \(request 17\)"):
            look()


def test_what_was_not_erased_is_missing(store: Store) -> None:
    assert store.erased.reason(digest("rows")) is None
    with pytest.raises(CorruptArtifactError, match="is missing"):
        store.blobs.read_bytes(digest("rows"))


def test_results_of_many_outputs_are_retired_and_no_other(store: Store) -> None:
    outputs = [digest(f"output {number}") for number in range(1200)]
    for number in (0, 600, 1199):
        store.results.record(lineage(digest(f"key {number}"), outputs[number]))
    kept = store.results.record(lineage(digest("kept"), digest("another output")))
    with store.database.write() as connection:
        assert retire(connection, outputs, Tombstone.COLLECTED) == 3
        assert retire(connection, outputs, Tombstone.COLLECTED) == 0
    assert store.results.find(digest("key 600")) is None
    assert store.results.find(kept.key) == kept
