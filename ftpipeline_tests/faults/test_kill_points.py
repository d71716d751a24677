"""kill -9 at every write point: never a visible partial object, a row that leads nowhere, or a lost committed row."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ftpipeline.cycle.maintenance import ROOTS
from ftpipeline.digest import Digest
from ftpipeline.store.fsck import check
from ftpipeline.store.gc import collect
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.faults.kill import Work, killed_at, write_points
from ftpipeline_tests.store.damage import flip_a_bit, object_path
from ftpipeline_tests.store.folders import quick_folder
from ftpipeline_tests.store.rows import digest, lineage, put_tree

KEY, WEEK = digest("key"), "2026-11-02"


@contextmanager
def opened(home: Path) -> Iterator[Store]:
    with closing(Home(home).open()) as store:
        yield store


def prepare(home: Path) -> None:
    """A store with a committed pointer, garbage, and one altered object that nothing needs."""
    with opened(home) as store:
        store.pointers.put("train", WEEK, "old run", 0, put_tree(store.trees, weights=b"old", tokenizer=b"shared"))
        store.results.record(lineage(digest("garbage"), put_tree(store.trees, weights=b"garbage", tokenizer=b"shared")))
        flip_a_bit(store, store.blobs.put_bytes(b"will be altered"))


def run_a_step(home: Path) -> None:
    with opened(home) as store:
        tree = put_tree(store.trees, weights=b"new", tokenizer=b"shared")
        store.results.record(lineage(KEY, tree))
        store.pointers.put("train", WEEK, "new run", 0, tree)


def collect_garbage(home: Path) -> None:
    with opened(home) as store:
        collect(store, ROOTS, timedelta(hours=24), datetime.now(UTC) + timedelta(hours=48), dry_run=False)


def check_the_store(home: Path) -> None:
    with opened(home) as store:
        check(store, ROOTS)


def latest(store: Store) -> Digest:
    pointer = store.pointers.latest("train", WEEK)
    assert pointer is not None
    return pointer.digest


def step_is_done(store: Store) -> None:
    known = store.results.find(KEY)
    assert known is not None
    assert latest(store) == known.output
    assert store.trees.read(known.output, "weights") == b"new"


def garbage_is_gone(store: Store) -> None:
    assert not object_path(store, digest("garbage")).exists()
    assert store.results.find(digest("garbage")) is None
    assert not list((store.home.store_root / "staging").iterdir())


def altered_is_aside(store: Store) -> None:
    assert len(list(store.home.store_root.glob("lost+found/*"))) == 1


def nothing_is_torn(store: Store) -> None:
    """Whatever a row leads to is there and whole; the row that was committed before is still found."""
    bad = [problem for problem in check(store, ROOTS).problems if problem.digest != digest("will be altered")]
    assert bad == []
    old = store.pointers.find("train", WEEK, ["old run"])
    assert old is not None
    assert store.trees.read(old.digest, "weights") == b"old"
    store.trees.verify(latest(store))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("work", "is_done"),
    [(run_a_step, step_is_done), (collect_garbage, garbage_is_gone), (check_the_store, altered_is_aside)],
)
def test_a_process_killed_at_any_write_point_leaves_a_sound_store_and_the_next_one_finishes(
    work: Work, is_done: Callable[[Store], None]
) -> None:
    with quick_folder() as folder:
        prepare(folder / "template")
        shutil.copytree(folder / "template", folder / "home")
        points = write_points(work, folder / "home")
        assert points > 5
        for point in range(1, points + 1):
            shutil.rmtree(folder / "home")
            shutil.copytree(folder / "template", folder / "home")
            assert killed_at(point, work, folder / "home")
            with opened(folder / "home") as store:
                nothing_is_torn(store)
            work(folder / "home")
            with opened(folder / "home") as store:
                is_done(store)
                nothing_is_torn(store)
