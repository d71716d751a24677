"""gc and fsck over a whole home: the registry's digests are roots, with history."""

from datetime import UTC, datetime, timedelta

import pytest

from ftpipeline.cycle.maintenance import GRACE, fsck, gc
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError
from ftpipeline.store.fsck import Kind, Problem
from ftpipeline.store.opened import Store
from ftpipeline_tests.registry.world import BASE, NAME, WHO, World
from ftpipeline_tests.store.damage import age, lose, object_path
from ftpipeline_tests.store.rows import put_tree


@pytest.fixture
def world(store: Store) -> World:
    return World(store.database, store.home.store_root)


def let_time_pass(store: Store) -> None:
    for item in list(store.upkeep.objects()):
        age(object_path(store, item.digest), datetime.now(UTC) - GRACE - timedelta(hours=1))


def stored(store: Store) -> set[Digest]:
    return {item.digest for item in store.upkeep.objects()}


def test_production_its_predecessor_and_every_other_entry_are_kept(store: Store, world: World) -> None:
    for label in ("a", "b"):
        world.release(label)
    world.register("rejected", "fail")
    garbage = put_tree(store.trees, weights=b"never registered")
    let_time_pass(store)
    assert gc(store).objects == 2
    assert garbage not in stored(store)
    for label in ("a", "b", "rejected"):
        store.trees.verify(world.artifact(label))
    world.registry.rollback(NAME, **WHO)
    assert world.registry.resolve(NAME, "production").digest == world.artifact("a")


def test_the_gate_record_of_an_earlier_move_is_kept_after_a_newer_one_came(store: Store, world: World) -> None:
    first = world.register("a")[0].gate
    second = world.register("a", note="gated again")[0].gate
    assert first != second
    let_time_pass(store)
    gc(store)
    assert {first, second} <= stored(store)


def test_what_a_run_is_pinned_to_is_kept(store: Store, world: World) -> None:
    world.release("a")
    assert world.registry.pin("run", NAME).digest == world.artifact("a")
    let_time_pass(store)
    assert gc(store).objects == 0


def test_of_an_entry_that_was_deleted_all_but_the_artifact_is_kept(store: Store, world: World) -> None:
    entry, _ = world.register("a", "fail")
    let_time_pass(store)
    assert gc(store).objects == 0
    world.registry.delete(NAME, entry.artifact, **WHO)
    let_time_pass(store)
    gc(store)
    assert entry.artifact not in stored(store)
    assert {entry.manifest, entry.report, entry.gate} <= stored(store)


def test_the_default_grace_period_keeps_what_was_just_made(store: Store) -> None:
    garbage = put_tree(store.trees, weights=b"weights")
    assert gc(store).objects == 0
    assert garbage in stored(store)
    with pytest.raises(InputError):
        gc(store, timedelta(hours=1))


def test_an_artifact_of_the_registry_that_lost_its_bytes_is_found(store: Store, world: World) -> None:
    world.register("a")
    lose(store, world.artifact("a"))
    absent = {BASE, world.artifact("a")}
    assert set(fsck(store).problems) == {Problem(digest, Kind.MISSING, ()) for digest in absent}
