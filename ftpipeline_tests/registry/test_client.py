"""The client: what it hands out stood under the name, verified, and is not under quarantine."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ftpipeline.digest import of_bytes
from ftpipeline.errors import CorruptArtifactError, DatabaseError, QuarantinedError, StoreError, UnknownNameError
from ftpipeline.registry import Client, LocalArtifact
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline.store.trees import tree_digest
from ftpipeline_tests.registry.world import NAME, WHO, World


@pytest.fixture
def world(store: Store) -> World:
    return World(store.database, store.home.store_root)


@pytest.fixture
def client(home: Home, world: World) -> Iterator[Client]:
    with Client(home.root) as client:
        yield client


def content(found: LocalArtifact) -> str:
    return (found.folder / "model.onnx").read_text()


def test_a_name_and_stage_are_a_folder_with_the_verified_bytes(client: Client, world: World) -> None:
    world.release("a")
    found = client.resolve(NAME, "production")
    assert tree_digest(found.folder) == found.digest == world.artifact("a")
    assert (found.generation, found.stage, os.fspath(found)) == (1, "production", str(found.folder))


def test_the_folder_of_a_digest_is_made_once_and_outlives_a_move(client: Client, world: World) -> None:
    world.release("a")
    first = client.resolve(NAME, "production")
    made = first.folder.stat()
    assert client.resolve(NAME, "production") == first
    world.release("b")
    second = client.resolve(NAME, "production")
    assert (second.generation, content(second)) == (2, "weights of b")
    assert content(first) == "weights of a"
    world.registry.rollback(NAME, **WHO)
    third = client.resolve(NAME, "production")
    assert (third.folder, third.generation) == (first.folder, 3)
    assert third.folder.stat().st_mtime_ns == made.st_mtime_ns


def test_a_second_client_uses_the_folder_that_a_first_one_made(client: Client, world: World, home: Home) -> None:
    world.release("a")
    made = client.resolve(NAME, "production").folder
    inode = made.stat().st_ino
    with Client(home.root) as other:
        assert other.resolve(NAME, "production").folder == made
    assert made.stat().st_ino == inode


def test_quarantine_is_asked_at_every_call(client: Client, world: World, store: Store) -> None:
    world.release("a")
    client.resolve(NAME, "production")
    store.quarantine.mark(world.artifact("a"), of_bytes(b"receipt"), "its job diverged")
    with pytest.raises(QuarantinedError, match="its job diverged"):
        client.resolve(NAME, "production")
    store.quarantine.lift(world.artifact("a"), of_bytes(b"lifted"), "it was another job")
    assert client.resolve(NAME, "production").digest == world.artifact("a")


@pytest.mark.parametrize("edit", [b"WEIGHTS of a", b"weights of a\n", b""])
def test_bytes_that_were_edited_in_place_are_not_served(client: Client, world: World, edit: bytes) -> None:
    world.release("a")
    served = client.resolve(NAME, "production").folder / "model.onnx"
    times = served.stat()
    served.chmod(0o600)
    served.write_bytes(edit)
    os.utime(served, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(CorruptArtifactError):  # the file is a link to the very bytes that the store keeps
        client.resolve(NAME, "production")


def test_a_folder_that_somebody_spoilt_is_made_anew(client: Client, world: World) -> None:
    world.release("a")
    folder = client.resolve(NAME, "production").folder
    (folder / "model.onnx").unlink()
    assert content(client.resolve(NAME, "production")) == "weights of a"
    (folder / "extra.txt").write_text("not part of it")
    assert tree_digest(client.resolve(NAME, "production").folder) == world.artifact("a")


def test_a_cache_that_cannot_be_written_is_one_line(home: Home, world: World, tmp_path: Path) -> None:
    world.release("a")
    (tmp_path / "file").write_text("")
    with Client(home.root, cache=tmp_path / "file" / "models") as client, pytest.raises(StoreError) as refused:
        client.resolve(NAME, "production")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "stage"), [("nobody", "production"), (NAME, "staging"), (NAME, "shadow")])
def test_what_stands_for_nothing_is_unknown(client: Client, world: World, name: str, stage: str) -> None:
    world.release("a")
    with pytest.raises(UnknownNameError):
        client.resolve(name, stage)


def test_a_client_makes_no_home_and_does_not_outlive_its_process(tmp_path: Path, client: Client) -> None:
    with pytest.raises(StoreError, match="is no home"):
        Client(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    client.close()


def test_a_registry_of_a_newer_version_is_refused_with_the_cure(home: Home, world: World) -> None:
    from sqlalchemy import text

    from ftpipeline.store.schema import VERSION_TABLE

    with world.database.write() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(DatabaseError, match="install a newer ftpipeline"):
        Client(home.root)


def test_threads_get_whole_answers_while_production_moves(client: Client, world: World, home: Home) -> None:
    labels = [f"model {number}" for number in range(8)]
    world.release(labels[0])
    stands = {1: labels[0]} | {generation + 1: label for generation, label in enumerate(labels[1:], start=1)}
    answers: list[LocalArtifact] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                answers.append(client.resolve(NAME, "production"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for label in labels[1:]:
        world.release(label)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {answer.generation for answer in answers} >= {len(labels)} or len(answers) > 0
    for answer in set(answers):
        assert content(answer) == f"weights of {stands[answer.generation]}"
        assert answer.digest == world.artifact(stands[answer.generation])


def test_naming_the_registry_loads_no_database_library() -> None:
    program = "import sys, ftpipeline.registry.stages; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_the_registry_does_not_offer_is_an_attribute_error() -> None:
    import ftpipeline.registry

    with pytest.raises(AttributeError, match="Clients"):
        _ = ftpipeline.registry.Clients


def test_a_client_that_was_opened_before_a_fork_says_so(home: Home, world: World) -> None:
    world.release("a")
    with closing(Client(home.root)) as client:
        child = os.fork()
        if child == 0:
            try:
                client.resolve(NAME, "production")
            except DatabaseError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
