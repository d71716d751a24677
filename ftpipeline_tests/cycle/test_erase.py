"""An erasure leaves no row of the key in the store, and the lineage of everything as verifiable as it was."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import NoReturn

import pytest
from obstore.store import LocalStore

from ftpipeline.cycle import audit, bindings, maintenance
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.erase import Erasure, erase
from ftpipeline.cycle.stages import BY_NAME, EVAL_SETS, run_stage
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.runner import Call
from ftpipeline.errors import CorruptArtifactError, InputError
from ftpipeline.pipeline import load
from ftpipeline.records import Action, RunContext
from ftpipeline.steps.rows import CuratedRow, Reject, SnapshotRow
from ftpipeline.steps.snapshot import REJECTS
from ftpipeline.steps.tables import ROWS, read_rows
from ftpipeline.store.home import Home
from ftpipeline.store.remote import RemoteObjects
from ftpipeline_tests.cycle.bundle_world import Silent, bundle_of, new_key
from ftpipeline_tests.cycle.model_step import train
from ftpipeline_tests.tiny_pipeline import NEXT_WEEK, WEEK, build_tiny_pipeline

KEY = "customer_id=c3"
SECRET = "forgetmenot"


@dataclass
class World:
    """A pipeline, the store it ran in, and what its stages made."""

    cycle: Cycle
    folder: Path
    made: dict[tuple[str, str], Digest] = field(default_factory=dict)

    def run(self, week: str, run_id: str = "run-1") -> Action:
        """Run the data stages of a week and a stand-in for its training; return what the snapshot stage did."""
        run = RunContext(run_id, "tiny", date.fromisoformat(week))
        actions = {}
        for name in (*EVAL_SETS, "snapshot", "curate", "split"):
            inputs = {before: self.made[week, before] for before in BY_NAME[name].after}
            result = run_stage(self.cycle, BY_NAME[name], run, inputs)
            self.made[week, name], actions[name] = result.output, result.action
        model = self.cycle.run(Call(BoundStep(train), {"split": self.made[week, "split"]}, {"week": week}), run)
        self.made[week, "train"] = model.output
        self.cycle.store.pointers.put("tiny/snapshot", week, run_id, 0, self.made[week, "snapshot"])
        return actions["snapshot"]

    def rows(self, week: str) -> list[SnapshotRow]:
        return read_rows(self._file(self.made[week, "snapshot"], ROWS), SnapshotRow)

    def rejects(self, tree: Digest) -> list[Reject]:
        return read_rows(self._file(tree, REJECTS), Reject)

    def trained_on(self, week: str) -> list[CuratedRow]:
        return read_rows(self._file(self.made[week, "split"], "train.parquet"), CuratedRow)

    def _file(self, tree: Digest, name: str) -> Path:
        path = self.folder / "read.parquet"
        path.write_bytes(self.cycle.store.trees.read(tree, name))
        return path


@pytest.fixture
def world(tmp_path: Path, home: Home) -> Iterator[World]:
    with _opened(home, tmp_path) as world:
        yield world


@contextmanager
def _opened(home: Home, folder: Path) -> Iterator[World]:
    pipeline = load(build_tiny_pipeline(folder / "tiny"))
    with closing(home.open()) as store:
        yield World(Cycle(pipeline, store, Silent(), bindings.SUBPROCESS_LAUNCHER), folder)


@pytest.fixture
def bucket(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bucket that is a folder, in which the home has its store."""
    folder = tmp_path / "bucket"
    folder.mkdir()
    monkeypatch.setenv("FTPIPELINE_STORE", "s3://bucket/tickets")
    monkeypatch.setattr(RemoteObjects, "connect", lambda url: RemoteObjects(LocalStore(folder), url))
    return folder


@pytest.fixture
def remote_world(bucket: Path, home: Home, tmp_path: Path) -> Iterator[World]:
    with _opened(home, tmp_path) as world:
        yield world


def of_key(rows: list[SnapshotRow]) -> list[SnapshotRow]:
    return [row for row in rows if KEY in row.groups]


def test_an_erasure_end_to_end(world: World) -> None:
    store = world.cycle.store
    world.run(WEEK)
    before, old, texts = world.rows(WEEK), dict(world.made), [row.text for row in of_key(world.rows(WEEK))]
    lineage = audit.walk(store, old[WEEK, "train"])
    assert texts

    erasure = erase(store, KEY, "request 7")

    assert erasure.rows == len(texts)
    assert [model.artifact for model in erasure.models] == [old[WEEK, "train"]]
    assert set(erasure.trees) >= {old[WEEK, "snapshot"], old[WEEK, "curate"], old[WEEK, "split"]}
    assert not _stored_parquet_with(world, texts)
    with pytest.raises(CorruptArtifactError, match="erased on purpose \\(request 7\\)"):
        world.rows(WEEK)
    assert audit.walk(store, old[WEEK, "train"]) == lineage
    assert bundle_of(store, old[WEEK, "train"], new_key())  # a bundle is verified before it is handed out
    assert maintenance.fsck(store).problems == ()

    assert world.run(WEEK, "run-2") is Action.REUSED
    assert world.rows(WEEK) == [row for row in before if KEY not in row.groups]
    assert erasure.snapshots == {old[WEEK, "snapshot"]: world.made[WEEK, "snapshot"]}
    pointer = store.pointers.latest("tiny/snapshot", WEEK)
    assert pointer is not None
    assert pointer.digest == world.made[WEEK, "snapshot"]
    assert not [row for row in world.trained_on(WEEK) if KEY in row.groups]


def _stored_parquet_with(world: World, texts: list[str]) -> list[str]:
    """Return the texts that any stored table still holds."""
    from pyarrow import parquet

    found = []
    for item in world.cycle.store.upkeep.objects():
        data = world.cycle.store.blobs.read_bytes(item.digest)
        if data[:4] == b"PAR1":
            path = world.folder / "any.parquet"
            path.write_bytes(data)
            cells = {str(cell) for column in parquet.read_table(path).to_pydict().values() for cell in column}
            found += [text for text in texts if text in cells]
    return found


def test_an_erasure_reaches_a_remote_store_and_the_copies_here(remote_world: World, bucket: Path) -> None:
    world, store = remote_world, remote_world.cycle.store
    world.run(WEEK)
    old, texts = dict(world.made), {row.text for row in of_key(world.rows(WEEK))}
    places = (bucket, store.home.store_root)
    assert all(_tables_with(place, texts) for place in places)
    lineage = audit.walk(store, old[WEEK, "train"])

    erasure = erase(store, KEY, "request 7")

    assert [model.artifact for model in erasure.models] == [old[WEEK, "train"]]
    assert not any(_tables_with(place, texts) for place in places)
    assert all(store.blobs.size(blob) is None for blob in erasure.blobs)
    assert all(store.erased.reason(blob) == "request 7" for blob in erasure.blobs)
    with pytest.raises(CorruptArtifactError, match="erased on purpose \\(request 7\\)"):
        store.trees.read(old[WEEK, "snapshot"], ROWS)
    assert audit.walk(store, old[WEEK, "train"]) == lineage
    assert maintenance.fsck(store).problems == ()
    assert world.run(WEEK, "run-2") is Action.REUSED
    assert not of_key(world.rows(WEEK))


def test_a_remote_erasure_that_died_between_two_objects_is_finished_by_another(
    remote_world: World, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, store = remote_world, remote_world.cycle.store
    world.run(WEEK)
    texts = {row.text for row in of_key(world.rows(WEEK))}
    remove = RemoteObjects.remove
    left = iter(range(2))

    def remove_one_and_die(objects: RemoteObjects, digest: Digest, before: datetime) -> bool:
        return remove(objects, digest, before) if next(left) == 0 else _die()

    with monkeypatch.context() as dying:
        dying.setattr(RemoteObjects, "remove", remove_one_and_die)
        with pytest.raises(KeyboardInterrupt):
            erase(store, KEY, "request 7")
    assert _tables_with(bucket, texts)
    assert erase(store, KEY, "request 7").blobs
    assert not any(_tables_with(place, texts) for place in (bucket, store.home.store_root))
    assert maintenance.fsck(store).problems == ()


def _tables_with(folder: Path, texts: set[str]) -> list[Path]:
    """Return the Parquet files below a folder that hold one of the texts, whatever they are called."""
    from pyarrow import parquet

    files = [path for path in folder.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"PAR1"]
    tables = {path: parquet.read_table(path).to_pydict() for path in files}
    return [
        path for path, table in tables.items() if texts & {str(cell) for column in table.values() for cell in column}
    ]


def test_later_snapshots_do_not_take_the_key_in_and_count_it(world: World) -> None:
    world.run(WEEK)
    erase(world.cycle.store, KEY, "request 7")
    assert world.run(NEXT_WEEK) is Action.EXECUTED
    assert not of_key(world.rows(NEXT_WEEK))
    erased = [reject for reject in world.rejects(world.made[NEXT_WEEK, "snapshot"]) if reject.reason == "erased"]
    assert erased
    assert {(reject.id, reject.excerpt, reject.groups) for reject in erased} == {("", "", ())}


def test_a_second_erasure_finds_nothing(world: World) -> None:
    world.run(WEEK)
    erase(world.cycle.store, KEY, "request 7")
    again = erase(world.cycle.store, KEY, "request 7")
    assert again == Erasure(0, {}, (), (), 0, ())


def test_one_row_is_erased_by_its_id(world: World) -> None:
    world.run(WEEK)
    ident = world.rows(WEEK)[0].id
    others = len(world.rows(WEEK)) - 1
    assert erase(world.cycle.store, ident, "request 8").rows == 1
    world.run(WEEK, "run-2")
    assert ident not in {row.id for row in world.rows(WEEK)}
    assert len(world.rows(WEEK)) == others


def test_a_key_that_nobody_has_is_kept_out_from_now_on_and_changes_nothing_stored(world: World) -> None:
    world.run(WEEK)
    stored = {item.digest for item in world.cycle.store.upkeep.objects()}
    assert erase(world.cycle.store, "customer_id=nobody", "request 9").rows == 0
    assert {item.digest for item in world.cycle.store.upkeep.objects()} == stored


def test_an_erasure_that_died_before_the_bytes_went_is_finished_by_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.run(WEEK)
    texts = [row.text for row in of_key(world.rows(WEEK))]
    with monkeypatch.context() as dying:
        dying.setattr(world.cycle.store.erased, "add", _die)
        with pytest.raises(KeyboardInterrupt):
            erase(world.cycle.store, KEY, "request 7")
    assert _stored_parquet_with(world, texts)
    assert erase(world.cycle.store, KEY, "request 7").rows == len(texts)
    assert not _stored_parquet_with(world, texts)


def _die(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("key", "reason"), [("", "why"), ("customer_id=", "why"), (KEY, " ")])
def test_a_blank_key_or_reason_is_refused(world: World, key: str, reason: str) -> None:
    with pytest.raises(InputError, match="needs a key"):
        erase(world.cycle.store, key, reason)


def test_the_list_of_the_erased_does_not_name_them(world: World) -> None:
    erase(world.cycle.store, f"customer_id={SECRET}", "request 7")
    stored = world.cycle.store.home.root.rglob("*")
    assert not [path for path in stored if path.is_file() and SECRET.encode() in path.read_bytes()]
