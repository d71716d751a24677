"""A full disk and a store that may not be written: one line, and nothing has changed."""

import os
from pathlib import Path

import pytest

from ftpipeline.digest import of_bytes
from ftpipeline.errors import DatabaseError, EnvironmentProblemError, StoreError
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.opened import Store
from ftpipeline_tests.faults.disk import no_space_beyond
from ftpipeline_tests.store.folders import quick_folder
from ftpipeline_tests.store.rows import digest, lineage, put_tree


def one_line(error: EnvironmentProblemError) -> None:
    assert "\n" not in str(error)
    assert error.exit_code == 3


def test_a_tree_that_does_not_fit_is_not_visible_and_can_be_put_later(store: Store, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "weights").write_bytes(b"x" * 20_000)
    with no_space_beyond(10_000), pytest.raises(StoreError, match="free space") as caught:
        store.trees.put(tmp_path / "source")
    one_line(caught.value)
    assert list(store.upkeep.objects()) == []
    assert list((store.home.store_root / "staging").iterdir()) == []
    store.trees.verify(store.trees.put(tmp_path / "source"))


def test_a_row_that_does_not_fit_is_not_there(store: Store) -> None:
    record = lineage(digest("key"), put_tree(store.trees, a=b"a"), facts={"text": "x" * 1_000_000})
    with no_space_beyond(200_000), pytest.raises(DatabaseError) as caught:
        store.results.record(record)
    one_line(caught.value)
    assert store.results.find(record.key) is None
    assert store.results.record(record) == record


def test_a_store_that_may_not_be_written_can_be_read(tmp_path: Path) -> None:
    with quick_folder() as folder:
        folder.chmod(0o755)
        blobs = LocalBlobs(folder / "store")
        known = blobs.put_bytes(b"bytes")
        for path in (blobs.root, *(path for path in blobs.root.rglob("*") if path.is_dir())):
            path.chmod(0o555)
        if (child := os.fork()) == 0:
            os._exit(_read_then_write(blobs))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for path in (blobs.root, *(path for path in blobs.root.rglob("*") if path.is_dir())):
            path.chmod(0o755)
        assert blobs.size(of_bytes(b"more bytes")) is None
        assert blobs.read_bytes(known) == b"bytes"


def _read_then_write(blobs: LocalBlobs) -> int:
    """Return 0 if reading works and writing is refused in one line."""
    if os.geteuid() == 0:
        os.setuid(65534)  # permissions do not hold root back
    if blobs.read_bytes(of_bytes(b"bytes")) != b"bytes":
        return 1
    try:
        blobs.put_bytes(b"more bytes")
    except StoreError as error:
        return 0 if "Permission denied" in str(error) and "\n" not in str(error) else 2
    return 3
