"""Remote objects and their cache: on obstore's own memory and folder stores, and against servers that misbehave."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import LocalStore, MemoryStore

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.errors import CorruptArtifactError, StoreError
from ftpipeline.store import remote as remote_module
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.cache import CachedBlobs
from ftpipeline.store.endpoint import Limits
from ftpipeline.store.home import Home
from ftpipeline.store.remote import PART, RemoteObjects
from ftpipeline.store.trees import Trees
from ftpipeline_tests.store.damage import age, overwrite
from ftpipeline_tests.store.folders import quick_folder
from ftpipeline_tests.store.rows import put_tree

ROOT = str(Path(__file__).parents[2])
ABSENT = of_bytes(b"never stored")
LONG_AGO = datetime.now(UTC) - timedelta(days=1)


class World:
    """A bucket that is a folder, and a cache before it."""

    def __init__(self, root: Path, limit: int = 2**30) -> None:
        self.bucket = root / "bucket"
        self.bucket.mkdir(parents=True)
        self.remote = RemoteObjects(LocalStore(self.bucket), "bucket")
        self.copies = LocalBlobs(root / "cache")
        self.blobs = CachedBlobs(self.remote, self.copies, limit, lambda digest: [f"needs {digest}"])

    def object_path(self, digest: Digest) -> Path:
        name = digest.removeprefix("sha256:")
        return self.bucket / "objects" / "sha256" / name[:2] / name

    def forget_copies(self) -> None:
        for path in self.copies.objects.glob("*/*"):
            path.unlink()

    def copied(self) -> set[Path]:
        return set(self.copies.objects.glob("*/*"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@given(data=st.binary(max_size=200))
def test_what_was_put_reads_back_with_and_without_a_copy(data: bytes) -> None:
    with quick_folder() as folder:
        copies = LocalBlobs(folder)
        blobs = CachedBlobs(RemoteObjects(MemoryStore(), "memory"), copies, 2**20)
        digest = blobs.put_bytes(data)
        assert digest == of_bytes(data)
        assert blobs.read_bytes(digest) == data
        copies.path(digest).unlink()
        assert blobs.read_bytes(digest) == data
        assert blobs.size(digest) == len(data)
        blobs.checkout(digest, folder / "target")
        assert (folder / "target").read_bytes() == data
        blobs.verify(digest)


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 3 * PART])
def test_a_file_is_stored_whole_whatever_its_size(world: World, tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert world.blobs.put_file(tmp_path / "file") == (of_bytes(data), size)
    world.forget_copies()
    world.blobs.checkout(of_bytes(data), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == data


def test_trees_are_kept_in_it_like_in_a_folder(world: World, tmp_path: Path) -> None:
    trees = Trees(world.blobs)
    tree = put_tree(trees, a=b"a", b=b"b")
    world.forget_copies()
    assert trees.is_present(tree)
    trees.checkout(tree, tmp_path / "target")
    assert (tmp_path / "target" / "b").read_bytes() == b"b"


def test_a_missing_object_raises_wherever_it_is_needed(world: World, tmp_path: Path) -> None:
    assert world.blobs.size(ABSENT) is None
    for look in (world.blobs.read_bytes, world.blobs.verify, lambda d: world.blobs.checkout(d, tmp_path / "target")):
        with pytest.raises(CorruptArtifactError, match=f"missing; needed by needs {ABSENT}"):
            look(ABSENT)


def test_a_copy_proves_nothing_about_the_object(world: World) -> None:
    digest = world.blobs.put_bytes(b"bytes")
    world.object_path(digest).unlink()
    assert world.blobs.size(digest) is None
    with pytest.raises(CorruptArtifactError, match="missing"):
        world.blobs.verify(digest)


def test_altered_remote_bytes_are_never_handed_out(world: World, tmp_path: Path) -> None:
    digest = world.blobs.put_bytes(b"bytes")
    world.forget_copies()
    overwrite(world.object_path(digest), b"bytez")
    for look in (world.blobs.read_bytes, world.blobs.verify, lambda d: world.blobs.checkout(d, tmp_path / "target")):
        with pytest.raises(CorruptArtifactError, match="altered"):
            look(digest)
    assert not (tmp_path / "target").exists()


def test_an_altered_copy_is_fetched_again(world: World) -> None:
    digest = world.blobs.put_bytes(b"bytes")
    overwrite(world.copies.path(digest), b"bytez")
    assert world.blobs.read_bytes(digest) == b"bytes"
    assert world.copies.read_bytes(digest) == b"bytes"


def test_a_truncated_object_is_not_taken_for_stored(world: World) -> None:
    digest = world.blobs.put_bytes(b"bytes")
    overwrite(world.object_path(digest), b"byt")
    with pytest.raises(CorruptArtifactError, match="3 bytes stand where 5 belong"):
        world.blobs.put_bytes(b"bytes")


def test_a_fresh_object_is_not_sent_again_and_an_old_one_is_made_young(world: World) -> None:
    digest = world.blobs.put_bytes(b"bytes")
    first = world.object_path(digest).stat()
    world.blobs.put_bytes(b"bytes")
    assert world.object_path(digest).stat().st_ino == first.st_ino
    age(world.object_path(digest), LONG_AGO)
    world.blobs.put_bytes(b"bytes")
    assert world.object_path(digest).stat().st_mtime >= first.st_mtime


def test_a_stored_file_does_not_follow_its_source(world: World, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_bytes(b"step 1")
    digest, _ = world.blobs.put_file(tmp_path / "checkpoint")
    (tmp_path / "checkpoint").write_bytes(b"step 2")
    world.forget_copies()
    assert world.blobs.read_bytes(digest) == b"step 1"


# --- the cache's limit ----------------------------------------------------------------------------------------------


def test_what_was_not_used_for_longest_is_evicted_first_and_can_be_fetched_again(tmp_path: Path) -> None:
    world = World(tmp_path, limit=5_000)
    old, used, *_ = [world.blobs.put_bytes(bytes([number]) * 1_000) for number in range(4)]
    for path in world.copied():
        age(path, LONG_AGO)
    world.blobs.read_bytes(used)
    new = world.blobs.put_bytes(b"new" * 700)
    names = {path.name for path in world.copied()}
    assert {used.removeprefix("sha256:"), new.removeprefix("sha256:")} <= names
    assert old.removeprefix("sha256:") not in names
    assert sum(path.stat().st_size for path in world.copied()) <= 5_000
    assert world.blobs.read_bytes(old) == bytes(1_000)


def test_what_was_used_in_the_last_minutes_stays_also_beyond_the_limit(tmp_path: Path) -> None:
    world = World(tmp_path, limit=10)
    digests = [world.blobs.put_bytes(bytes([number]) * 100) for number in range(3)]
    assert len(world.copied()) == 3
    assert [world.blobs.read_bytes(digest)[:1] for digest in digests] == [b"\0", b"\1", b"\2"]


# --- upkeep ---------------------------------------------------------------------------------------------------------


def test_objects_are_listed_hashed_moved_aside_and_removed(world: World) -> None:
    sound, bad = world.blobs.put_bytes(b"sound"), world.blobs.put_bytes(b"bad")
    overwrite(world.object_path(bad), b"bax")
    (world.object_path(bad).parent / "README").write_text("a note")
    listed = {item.digest: item for item in world.remote.objects()}
    assert {digest: item.size for digest, item in listed.items()} == {sound: 5, bad: 3}
    assert world.remote.is_sound(listed[sound])
    assert not world.remote.is_sound(listed[bad])
    world.remote.set_aside(bad)
    assert world.blobs.size(bad) is None
    assert [path.read_bytes() for path in (world.bucket / "lost+found").iterdir()] == [b"bax"]
    assert not world.remote.remove(sound, datetime.now(UTC) - timedelta(hours=1))
    assert world.remote.remove(sound, datetime.now(UTC) + timedelta(hours=1))
    assert not world.remote.remove(sound, datetime.now(UTC) + timedelta(hours=1))
    assert list(world.remote.objects()) == []


PEAK = """
import resource, sys
from pathlib import Path
from ftpipeline_tests.store.test_remote import World
world = World(Path(sys.argv[1]))
world.blobs.put_bytes(b"warm")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
digest, _ = world.blobs.put_file(Path(sys.argv[2]))
world.forget_copies()
world.blobs.verify(digest)
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def test_a_transfer_takes_bounded_memory(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(30 * PART)
    command = [sys.executable, "-c", PEAK, str(tmp_path / "world"), str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": ROOT})
    assert int(done.stdout) < 10 * PART


# --- what can go wrong ----------------------------------------------------------------------------------------------


def test_use_after_a_fork_is_an_error_and_not_a_hang(world: World) -> None:
    digest = world.blobs.put_bytes(b"bytes")
    if (child := os.fork()) == 0:
        try:
            world.blobs.size(digest)
        except StoreError as error:
            os._exit(0 if "before a fork" in str(error) else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert world.blobs.size(digest) == 5


class Server(ThreadingHTTPServer):
    """An S3 server that answers every request with one status, or none before the test is over."""

    daemon_threads = True

    def __init__(self, status: int | None) -> None:
        self.status = status
        self.requests = 0
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), Answer)


class Answer(BaseHTTPRequestHandler):
    """Counts the request and answers it, or keeps silent until the test is over."""

    server: Server

    def answer(self) -> None:
        self.server.requests += 1
        if self.server.status is None:
            self.server.over.wait(60)
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""


@contextmanager
def server(monkeypatch: pytest.MonkeyPatch, status: int | None) -> Iterator[Server]:
    with Server(status) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{running.server_port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "hunter2",
        }.items():
            monkeypatch.setenv(name, value)
        try:
            yield running
        finally:
            running.over.set()
            running.shutdown()
            thread.join()


@pytest.mark.parametrize("status", [500, 503, None])
def test_a_server_that_fails_or_stalls_is_asked_again_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    limits = Limits(connect=1.0, request=0.5, retries=2, total=20.0)
    with server(monkeypatch, status) as running:
        with pytest.raises(StoreError) as caught:
            RemoteObjects.connect("s3://bucket/prefix", limits)
        assert running.requests == 3
    assert "\n" not in str(caught.value)
    assert "s3://bucket/prefix" in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("status", [403, 404, 409])
def test_a_server_that_refuses_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    with server(monkeypatch, status) as running:
        with pytest.raises(StoreError, match="credentials") as caught:
            RemoteObjects.connect("s3://bucket/prefix", Limits(retries=2, total=20.0))
        assert 1 <= running.requests <= 3
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://bucket/prefix", "gs://bucket/prefix", "az://container/prefix"])
def test_a_url_without_credentials_is_one_line(home: Home, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    with server(monkeypatch, 403) as running:  # in place of the cloud's metadata service, which may hold credentials
        here = f"127.0.0.1:{running.server_port}"
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://{here}")
        monkeypatch.setenv("GCE_METADATA_HOST", here)
        monkeypatch.setenv("FTPIPELINE_STORE", url)
        with pytest.raises(StoreError, match="credentials") as caught:
            home.open()
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    assert not (home.root / "ftpipeline.db").exists()


def test_an_upload_that_did_not_arrive_is_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obstore, "put", lambda *args, **rest: None)
    with pytest.raises(StoreError, match="not there after its upload"):
        world.blobs.put_bytes(b"bytes")


def test_the_age_that_spares_an_upload_is_within_the_shortest_grace() -> None:
    assert RemoteObjects.shortest_grace >= remote_module.FRESH * 2
