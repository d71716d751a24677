"""The store on a real S3 server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import obstore
import pytest

from ftpipeline.digest import of_bytes
from ftpipeline.errors import StoreError
from ftpipeline.store.endpoint import Limits, open_url
from ftpipeline.store.fsck import Kind, check
from ftpipeline.store.gc import collect
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline.store.reach import STORE_ROOTS
from ftpipeline.store.remote import PART, RemoteObjects
from ftpipeline_tests.store.rows import digest, lineage, put_tree
from ftpipeline_tests.store.seaweed_server import SeaweedServer, private_server

pytestmark = pytest.mark.slow

URL = "s3://ftpipeline/prefix"
LIMITS = Limits(retries=2, total=20.0)


@pytest.fixture(scope="module")
def server() -> Iterator[SeaweedServer]:
    with private_server() as running:
        yield running


@pytest.fixture
def store(server: SeaweedServer, home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A home whose blobs are in a bucket; the server makes the bucket of the first object that is put in it."""
    for name, value in (server.environment | {"FTPIPELINE_STORE": URL}).items():
        monkeypatch.setenv(name, value)
    client = open_url(URL, LIMITS)
    obstore.put(client, "README", b"made by tests")
    with closing(home.open()) as opened:
        yield opened
    for batch in obstore.list(client):
        obstore.delete(client, [item["path"] for item in batch])


def objects(store: Store) -> dict[str, int]:
    return {item.digest: item.size for item in store.upkeep.objects()}


def forget_copies(store: Store) -> None:
    for path in store.home.store_root.glob("objects/*/*/*"):
        path.unlink()


def test_a_tree_is_put_listed_and_checked_out_from_the_server(store: Store, tmp_path: Path) -> None:
    data = os.urandom(3 * PART + 17)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "weights").write_bytes(data)
    tree = store.trees.put(tmp_path / "tree")
    assert objects(store)[of_bytes(data)] == len(data)
    forget_copies(store)
    assert store.trees.is_present(tree)
    store.trees.checkout(tree, tmp_path / "target")
    assert (tmp_path / "target" / "weights").read_bytes() == data


def test_fsck_finds_and_moves_aside_what_was_overwritten_on_the_server(store: Store) -> None:
    tree = put_tree(store.trees, weights=b"weights", config=b"config")
    store.pointers.put("train", None, "run", 0, tree)
    assert check(store, STORE_ROOTS).problems == ()
    name = digest("weights").removeprefix("sha256:")
    obstore.put(open_url(URL, LIMITS), f"objects/sha256/{name[:2]}/{name}", b"other")
    [problem] = check(store, STORE_ROOTS).problems
    assert (problem.digest, problem.kind, problem.dependants) == (digest("weights"), Kind.TRUNCATED, (tree,))
    assert digest("weights") not in objects(store)
    forget_copies(store)
    put_tree(store.trees, weights=b"weights", config=b"config")
    assert check(store, STORE_ROOTS).problems == ()


def test_gc_removes_what_nothing_reaches_from_the_server(store: Store) -> None:
    kept, garbage = put_tree(store.trees, a=b"kept"), put_tree(store.trees, a=b"garbage")
    store.pointers.put("train", None, "run", 0, kept)
    store.results.record(lineage(digest("key"), garbage))
    later = datetime.now(UTC) + timedelta(hours=48)
    collected = collect(store, STORE_ROOTS, timedelta(hours=24), later, dry_run=False)
    assert (collected.objects, collected.results) == (2, 1)
    assert set(objects(store)) == {kept, digest("kept")}
    store.trees.verify(kept)


def test_an_upload_that_is_killed_leaves_no_object(store: Store, tmp_path: Path) -> None:
    data = os.urandom(40 * PART)
    (tmp_path / "file").write_bytes(data)
    code = "import sys; from pathlib import Path; from ftpipeline.store.home import Home; "
    code += "store = Home(Path(sys.argv[1])).open(); print('open', flush=True); store.blobs.put_file(Path(sys.argv[2]))"
    command = [sys.executable, "-c", code, str(tmp_path / "other"), str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not list((tmp_path / "other").glob("cache/blobs/objects/*/*/*")):
            assert process.poll() is None
        process.kill()
    assert objects(store).get(of_bytes(data)) in (None, len(data))
    store.blobs.put_file(tmp_path / "file")
    forget_copies(store)
    store.blobs.verify(of_bytes(data))


@pytest.mark.parametrize(
    ("url", "variables"), [("s3://no-such-bucket/prefix", {}), (URL, {"AWS_SECRET_ACCESS_KEY": "wrong"})]
)
def test_a_bucket_that_may_not_be_used_is_one_line(
    store: Store, monkeypatch: pytest.MonkeyPatch, url: str, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match="credentials") as caught:
        RemoteObjects.connect(url, LIMITS)
    assert "\n" not in str(caught.value)
