import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.errors import CorruptArtifactError, DigestError, StoreError
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.durable import CHUNK
from ftpipeline_tests.store.folders import quick_folder

ABSENT = of_bytes(b"never stored")


@pytest.fixture
def blobs(tmp_path: Path) -> LocalBlobs:
    return LocalBlobs(tmp_path / "blobs")


def files_under(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def overwrite(blobs: LocalBlobs, digest: Digest, data: bytes) -> None:
    path = blobs.path(digest)
    path.chmod(0o644)
    path.write_bytes(data)


@given(data=st.binary(max_size=300))
def test_what_was_put_reads_back(data: bytes) -> None:
    with quick_folder() as folder:
        blobs = LocalBlobs(folder)
        digest = blobs.put_bytes(data)
        assert digest == of_bytes(data)
        assert blobs.read_bytes(digest) == data
        assert blobs.size(digest) == len(data)
        blobs.checkout(digest, folder / "target")
        assert (folder / "target").read_bytes() == data


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_a_file_is_stored_whole_whatever_its_size(blobs: LocalBlobs, tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert blobs.put_file(tmp_path / "file") == (of_bytes(data), size)
    assert blobs.read_bytes(of_bytes(data)) == data


def test_an_object_is_one_read_only_file_named_by_its_digest(blobs: LocalBlobs) -> None:
    name = blobs.put_bytes(b"bytes").removeprefix("sha256:")
    assert files_under(blobs.root) == [f"objects/sha256/{name[:2]}/{name}"]
    assert blobs.path(of_bytes(b"bytes")).stat().st_mode & 0o777 == 0o444


def test_nothing_is_made_before_the_first_put(blobs: LocalBlobs) -> None:
    assert blobs.size(ABSENT) is None
    assert not blobs.root.exists()


def test_putting_the_same_content_again_only_makes_the_object_younger(blobs: LocalBlobs) -> None:
    path = blobs.path(blobs.put_bytes(b"bytes"))
    os.utime(path, (1000, 1000))
    before = path.stat()
    blobs.put_bytes(b"bytes")
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime > before.st_mtime
    assert len(files_under(blobs.root)) == 1


def test_an_object_of_another_owner_gives_way_to_the_same_bytes(
    blobs: LocalBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    path = blobs.path(blobs.put_bytes(b"bytes"))
    os.utime(path, (1000, 1000))
    monkeypatch.setattr(os, "utime", refuse)
    assert blobs.read_bytes(blobs.put_bytes(b"bytes")) == b"bytes"
    assert path.stat().st_mtime > 1000
    assert len(files_under(blobs.root)) == 1


def test_a_stored_file_does_not_follow_its_source(blobs: LocalBlobs, tmp_path: Path) -> None:
    source = tmp_path / "checkpoint"
    source.write_bytes(b"step 1")
    digest, _ = blobs.put_file(source)
    source.write_bytes(b"step 2")
    assert blobs.read_bytes(digest) == b"step 1"


def test_a_checkout_is_a_link_and_not_a_copy(blobs: LocalBlobs, tmp_path: Path) -> None:
    digest = blobs.put_bytes(b"bytes")
    blobs.checkout(digest, tmp_path / "target")
    assert (tmp_path / "target").samefile(blobs.path(digest))


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_links_are_not_possible_objects_are_moved_and_checked_out_as_copies(
    blobs: LocalBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    digest = blobs.put_bytes(b"bytes")
    assert blobs.put_bytes(b"bytes") == digest
    blobs.checkout(digest, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"bytes"
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o444
    assert len(files_under(blobs.root)) == 1


def test_a_checkout_never_replaces_a_file(blobs: LocalBlobs, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"mine")
    with pytest.raises(StoreError, match="File exists"):
        blobs.checkout(blobs.put_bytes(b"bytes"), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"mine"


@given(data=st.binary(min_size=1, max_size=100), where=st.integers(0), mask=st.integers(1, 255))
def test_a_flipped_byte_is_never_handed_out(data: bytes, where: int, mask: int) -> None:
    with quick_folder() as folder:
        blobs = LocalBlobs(folder)
        digest = blobs.put_bytes(data)
        bad = bytearray(data)
        bad[where % len(data)] ^= mask
        overwrite(blobs, digest, bytes(bad))
        for look in (blobs.read_bytes, blobs.verify, lambda d: blobs.checkout(d, folder / "target")):
            with pytest.raises(CorruptArtifactError, match="altered"):
                look(digest)
        assert not (folder / "target").exists()


def test_a_read_that_does_not_match_raises_with_the_dependants(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path, dependants=lambda digest: [f"needs {digest}"])
    digest = blobs.put_bytes(b"bytes")
    overwrite(blobs, digest, b"other")
    with pytest.raises(CorruptArtifactError) as caught:
        blobs.read_bytes(digest)
    assert (caught.value.digest, caught.value.dependants) == (digest, (f"needs {digest}",))
    assert caught.value.exit_code == 1


def test_a_bad_first_read_is_read_again(blobs: LocalBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = blobs.put_bytes(b"bytes")
    reads = iter([b"bytez", b"bytes"])
    monkeypatch.setattr(Path, "read_bytes", lambda path: next(reads))
    assert blobs.read_bytes(digest) == b"bytes"


def test_a_missing_object_raises_wherever_it_is_needed(blobs: LocalBlobs, tmp_path: Path) -> None:
    for look in (blobs.read_bytes, blobs.verify, lambda digest: blobs.checkout(digest, tmp_path / "target")):
        with pytest.raises(CorruptArtifactError, match="missing"):
            look(ABSENT)


def test_a_truncated_object_is_not_taken_for_stored(blobs: LocalBlobs) -> None:
    digest = blobs.put_bytes(b"bytes")
    overwrite(blobs, digest, b"byt")
    with pytest.raises(CorruptArtifactError, match="3 bytes stand where 5 belong"):
        blobs.put_bytes(b"bytes")


@pytest.mark.parametrize("text", ["", "sha256:../../etc/passwd", "md5:00"])
def test_a_name_that_is_no_digest_leads_nowhere(blobs: LocalBlobs, text: str) -> None:
    with pytest.raises(DigestError):
        blobs.path(Digest(text))


# --- faults ---------------------------------------------------------------------------------------------------------


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let the kernel refuse writes beyond `size` bytes a file, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_does_not_fit_leaves_nothing(blobs: LocalBlobs, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(os.urandom(3 * CHUNK))
    puts: list[Callable[[], object]] = [
        lambda: blobs.put_file(tmp_path / "file"),
        lambda: blobs.put_bytes(b"x" * (2 * CHUNK)),
    ]
    for put in puts:
        with file_size_limit(CHUNK + 17), pytest.raises(StoreError) as caught:
            put()
        assert files_under(blobs.root) == []
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 3


def test_a_checkout_that_does_not_fit_leaves_nothing(
    blobs: LocalBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = blobs.put_bytes(b"x" * 5000)
    monkeypatch.setattr("ftpipeline.store.blobs.link", lambda source, target: False)
    with file_size_limit(1000), pytest.raises(StoreError):
        blobs.checkout(digest, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_store_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="File exists") as caught:
        LocalBlobs(tmp_path / "file" / "blobs").put_bytes(b"bytes")
    assert "\n" not in str(caught.value)


def test_a_source_that_cannot_be_read_leaves_nothing(blobs: LocalBlobs, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        blobs.put_file(tmp_path / "absent")
    assert files_under(blobs.root) == []


def test_a_put_killed_in_the_middle_leaves_no_visible_object(blobs: LocalBlobs, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = "import sys; from pathlib import Path; from ftpipeline.store.blobs import LocalBlobs; "
    code += "LocalBlobs(Path(sys.argv[1])).put_file(Path(sys.argv[2]))"
    command = [sys.executable, "-c", code, str(blobs.root), str(pipe)]
    with subprocess.Popen(command) as process, pipe.open("wb", buffering=0) as source:
        while not any(path.stat().st_size for path in blobs.root.glob("staging/*")):
            source.write(b"x" * 4096)
        process.kill()
        process.wait()
    assert [name for name in files_under(blobs.root) if name.startswith("objects")] == []
    assert blobs.read_bytes(blobs.put_bytes(b"after")) == b"after"


# --- concurrency ----------------------------------------------------------------------------------------------------

CONTENTS = [bytes([number]) * 20_000 for number in range(30)]


def put_all(root: Path) -> list[Digest]:
    blobs = LocalBlobs(root)
    return [blobs.put_bytes(content) for content in CONTENTS]


def test_writers_of_the_same_content_in_many_processes_agree(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        answers = list(pool.map(put_all, [tmp_path] * 3))
    assert answers == [[of_bytes(content) for content in CONTENTS]] * 3
    assert len(files_under(tmp_path)) == len(CONTENTS)
    for content in CONTENTS:
        LocalBlobs(tmp_path).verify(of_bytes(content))
