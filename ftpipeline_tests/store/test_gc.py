import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.digest import Digest
from ftpipeline.errors import CorruptArtifactError, InputError
from ftpipeline.store.gc import Collected, collect
from ftpipeline.store.opened import Store
from ftpipeline.store.reach import STORE_ROOTS, Roots
from ftpipeline_tests.store.damage import age, flip_a_bit, object_path
from ftpipeline_tests.store.rows import digest, lineage, put_tree

GRACE = timedelta(hours=24)
LATER = timedelta(hours=48)


def gc(store: Store, roots: Iterable[Roots] = STORE_ROOTS, **rest: Any) -> Collected:
    """Collect as if everything had been made two days ago."""
    return collect(store, roots, **{"grace": GRACE, "now": datetime.now(UTC) + LATER, "dry_run": False, **rest})


def digests(store: Store) -> set[Digest]:
    return {item.digest for item in store.upkeep.objects()}


def point_to(store: Store, tree: Digest) -> None:
    store.pointers.put("asset", "2026-11-02", "run", 0, tree)


def test_what_nothing_reaches_goes_and_the_bytes_are_counted(store: Store) -> None:
    kept = put_tree(store.trees, weights=b"kept", tokenizer=b"shared")
    garbage = put_tree(store.trees, weights=b"garbage", tokenizer=b"shared")
    point_to(store, kept)
    freed = len(b"garbage") + len(store.blobs.read_bytes(garbage))
    assert gc(store) == Collected(objects=2, freed=freed, results=0, swept=0)
    assert digests(store) == {kept, digest("kept"), digest("shared")}
    store.trees.verify(kept)


def test_a_dry_run_says_the_same_and_removes_nothing(store: Store) -> None:
    tree = put_tree(store.trees, a=b"a")
    store.results.record(lineage(digest("key"), tree))
    (store.home.scratch / "dead").mkdir()
    (store.home.scratch / "dead" / "half").write_bytes(b"half")
    before = digests(store)
    planned = gc(store, dry_run=True)
    assert digests(store) == before
    assert store.results.find(digest("key")) is not None
    assert (store.home.scratch / "dead" / "half").exists()
    assert gc(store) == planned
    assert (planned.objects, planned.results, planned.swept) == (2, 1, 4)
    assert digests(store) == set()


def test_every_pointer_and_all_that_its_tree_was_made_from_is_kept(store: Store) -> None:
    snapshot, curated, old = (put_tree(store.trees, rows=rows) for rows in (b"all", b"clean", b"older run"))
    manifest = put_tree(store.trees, manifest=b"pinned")
    store.results.record(lineage(digest("snapshot"), snapshot))
    store.results.record(lineage(digest("curate"), curated, {"snapshot": snapshot}, manifest=manifest))
    point_to(store, old)
    point_to(store, curated)
    assert gc(store).objects == 0
    for tree in (snapshot, curated, old, manifest):
        store.trees.verify(tree)
    assert store.results.find(digest("snapshot")) is not None


def test_a_root_source_keeps_what_it_names(store: Store) -> None:
    named, blob, other = put_tree(store.trees, a=b"a"), store.blobs.put_bytes(b"no tree"), put_tree(store.trees, b=b"b")
    gc(store, [lambda connection: [named, blob]])
    assert digests(store) == {named, digest("a"), blob}
    assert other not in digests(store)


def test_a_claimed_eval_set_and_the_result_of_a_leased_key_are_kept(store: Store) -> None:
    evalset, leased = put_tree(store.trees, a=b"a"), put_tree(store.trees, b=b"b")
    store.eval_sets.claim("banking77", "v1", evalset)
    store.results.record(lineage(digest("key"), leased))
    store.leases.acquire(digest("key"), "me", 30.0)
    assert gc(store).objects == 0


def test_a_collected_result_is_no_hit_and_its_lineage_stays(store: Store) -> None:
    tree = put_tree(store.trees, a=b"a")
    record = store.results.record(lineage(digest("key"), tree))
    assert gc(store).results == 1
    assert store.results.find(record.key) is None
    assert store.results.made(tree) == [record]
    assert put_tree(store.trees, a=b"a") == tree
    again = store.results.record(lineage(digest("key"), tree, run_id="again"))
    assert store.results.find(record.key) == again


def test_what_is_younger_than_the_grace_period_is_kept(store: Store) -> None:
    put_tree(store.trees, a=b"upload in progress")
    store.results.record(lineage(digest("key"), put_tree(store.trees, b=b"just made")))
    before = digests(store)
    assert gc(store, now=datetime.now(UTC) + GRACE - timedelta(minutes=5)) == Collected(0, 0, 0, 0)
    assert digests(store) == before


def test_a_grace_period_that_work_in_progress_may_exceed_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="give 2 hours or more"):
        gc(store, grace=timedelta(minutes=119))


def test_putting_an_old_object_again_saves_it_from_a_collection_that_listed_it_before(store: Store) -> None:
    tree = put_tree(store.trees, a=b"a")
    before = datetime.now(UTC) - GRACE
    for item in list(store.upkeep.objects()):
        age(object_path(store, item.digest), before - timedelta(days=1))
    listed = list(store.upkeep.objects())
    put_tree(store.trees, a=b"a")  # an upload, between the listing and the removal
    assert not any(store.upkeep.remove(item.digest, before) for item in listed)
    store.trees.verify(tree)


def test_a_result_that_was_used_lately_is_kept_with_all_its_inputs(store: Store) -> None:
    base, tree = put_tree(store.trees, a=b"a"), put_tree(store.trees, b=b"b")
    store.results.record(lineage(digest("key"), tree, {"base": base}))
    for item in list(store.upkeep.objects()):
        age(object_path(store, item.digest), datetime.now(UTC) - timedelta(days=30))
    assert gc(store, now=datetime.now(UTC)).objects == 0


def test_an_altered_tree_that_must_be_kept_stops_the_collection(store: Store) -> None:
    tree, garbage = put_tree(store.trees, a=b"a"), put_tree(store.trees, b=b"b")
    point_to(store, tree)
    flip_a_bit(store, tree)
    with pytest.raises(CorruptArtifactError):
        gc(store)
    assert garbage in digests(store)


def test_abandoned_work_is_swept_and_living_work_is_not(store: Store) -> None:
    linked = store.blobs.put_bytes(b"an input, linked into a workspace")
    point_to(store, put_tree(store.trees, rows=b"an input, linked into a workspace"))
    now = datetime.now(UTC)
    for name, changed in (("dead", now - LATER), ("alive", now)):
        workspace = store.home.scratch / name
        (workspace / "out").mkdir(parents=True)
        os.link(object_path(store, linked), workspace / "input")
        (workspace / "out" / "half").write_bytes(b"12345")
        age(workspace, now - LATER)
        (workspace / "out" / "half").write_bytes(b"12345")
        age(workspace / "out" / "half", changed)
    age(object_path(store, linked), now - LATER)
    staged = store.home.store_root / "staging" / "1-abc"
    staged.write_bytes(b"123")
    age(staged, now - LATER)
    assert gc(store, now=now).swept == 5 + 3
    assert [path.name for path in store.home.scratch.iterdir()] == ["alive"]
    assert not staged.exists()


def test_files_that_are_no_objects_are_left_alone(store: Store) -> None:
    put_tree(store.trees, a=b"a")
    note: Path = object_path(store, digest("a")).with_name("README")
    note.write_text("a note")
    gc(store)
    assert note.exists()
