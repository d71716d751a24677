from collections.abc import Callable
from pathlib import Path

import pytest

from ftpipeline.digest import Digest
from ftpipeline.errors import CorruptArtifactError
from ftpipeline.store.fsck import Kind, Problem, check
from ftpipeline.store.opened import Store
from ftpipeline.store.reach import STORE_ROOTS
from ftpipeline.tree_format import TreeEntry, encode
from ftpipeline_tests.store.damage import flip_a_bit, lose, object_path, truncate
from ftpipeline_tests.store.rows import digest, lineage, put_tree

WEIGHTS = digest("weights")


def problems(store: Store) -> tuple[Problem, ...]:
    return check(store, STORE_ROOTS).problems


@pytest.fixture
def made(store: Store) -> Digest:
    """A tree of one file that a result made, a pointer leads to, and another result consumed."""
    tree = put_tree(store.trees, weights=b"weights", config=b"config")
    store.results.record(lineage(digest("train"), tree))
    store.results.record(lineage(digest("export"), put_tree(store.trees, int8=b"int8"), {"adapter": tree}))
    store.pointers.put("train", None, "run", 0, tree)
    return tree


@pytest.fixture
def exported(store: Store, made: Digest) -> Digest:
    return store.results.dependants(made)[0]


def test_a_sound_store_has_no_problems_and_everything_was_hashed(store: Store, made: Digest) -> None:
    report = check(store, STORE_ROOTS)
    assert report.problems == ()
    assert report.objects == 5
    assert report.size == sum(item.size for item in store.upkeep.objects())


@pytest.mark.parametrize(
    ("damage", "kind", "is_moved"),
    [(flip_a_bit, Kind.ALTERED, True), (truncate, Kind.TRUNCATED, True), (lose, Kind.MISSING, False)],
)
def test_a_damaged_member_is_found_with_its_trees_and_what_was_made_from_them(
    store: Store,
    made: Digest,
    exported: Digest,
    damage: Callable[[Store, Digest], None],
    kind: Kind,
    is_moved: bool,
) -> None:
    damage(store, WEIGHTS)
    assert problems(store) == (Problem(WEIGHTS, kind, (made, exported)),)
    moved = list(store.home.store_root.glob("lost+found/*"))
    assert [path.name[:64] for path in moved] == ([WEIGHTS.removeprefix("sha256:")] if is_moved else [])
    assert not object_path(store, WEIGHTS).exists()


@pytest.mark.parametrize("damage", [flip_a_bit, truncate, lose])
def test_making_the_bytes_again_heals_what_fsck_found(
    store: Store, made: Digest, damage: Callable[[Store, Digest], None], tmp_path: Path
) -> None:
    damage(store, WEIGHTS)
    assert len(problems(store)) == 1
    assert put_tree(store.trees, weights=b"weights", config=b"config") == made
    assert problems(store) == ()
    store.trees.checkout(made, tmp_path / "target")


def test_a_read_never_moves_bytes_aside(store: Store, made: Digest) -> None:
    flip_a_bit(store, WEIGHTS)
    with pytest.raises(CorruptArtifactError):
        store.trees.verify(made)
    assert object_path(store, WEIGHTS).exists()


def test_an_altered_tree_is_found_with_what_was_made_from_it(store: Store, made: Digest, exported: Digest) -> None:
    flip_a_bit(store, made)
    assert problems(store) == (Problem(made, Kind.ALTERED, (exported,)),)
    assert problems(store) == (Problem(made, Kind.DANGLING_POINTER, (exported,)),)


def test_a_pointer_and_a_result_that_lead_nowhere_are_told_apart(store: Store, made: Digest, exported: Digest) -> None:
    lose(store, made)
    lose(store, exported)
    found = {problem.digest: problem.kind for problem in problems(store)}
    assert found == {made: Kind.DANGLING_POINTER, exported: Kind.DANGLING_RESULT}


def test_a_result_that_was_set_aside_may_be_without_its_bytes(store: Store, exported: Digest) -> None:
    store.quarantine.mark(exported, digest("receipt"), "why")
    lose(store, exported)
    assert problems(store) == ()


def test_what_was_erased_on_purpose_is_no_problem(store: Store, made: Digest) -> None:
    store.erased.add(WEIGHTS, "request 17")
    lose(store, WEIGHTS)
    assert problems(store) == ()


def test_an_output_that_is_no_tree_is_malformed(store: Store) -> None:
    blob = store.blobs.put_bytes(b"no tree")
    store.results.record(lineage(digest("key"), blob))
    assert problems(store) == (Problem(blob, Kind.TREE_MALFORMED, ()),)


def test_a_tree_that_states_a_wrong_size_is_malformed(store: Store) -> None:
    member = store.blobs.put_bytes(b"12345")
    tree = store.blobs.put_bytes(encode([TreeEntry("file", 4, member)]))
    store.pointers.put("asset", None, "run", 0, tree)
    assert problems(store) == (Problem(tree, Kind.TREE_MALFORMED, ()),)


def test_an_altered_object_that_nothing_needs_is_found_too(store: Store) -> None:
    orphan = store.blobs.put_bytes(b"orphan")
    flip_a_bit(store, orphan)
    assert problems(store) == (Problem(orphan, Kind.ALTERED, ()),)


def test_a_root_that_is_a_blob_of_its_own_is_no_problem_unless_it_is_missing(store: Store) -> None:
    blob = store.blobs.put_bytes(b"a receipt")
    assert check(store, [lambda connection: [blob]]).problems == ()
    lose(store, blob)
    assert check(store, [lambda connection: [blob]]).problems == (Problem(blob, Kind.MISSING, ()),)
