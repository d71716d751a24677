import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import Digest, canonical_json, of_bytes
from ftpipeline.errors import CorruptArtifactError, StoreError, TreeError, UnknownNameError
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.trees import TreeEntry, Trees, scan, tree_digest
from ftpipeline_tests.store.folders import quick_folder

Files = Mapping[str, bytes]

_paths = st.lists(st.sampled_from(["a", "b.bin", "c d", "é", "ß"]), min_size=1, max_size=3).map("/".join)


def _without_files_as_folders(files: dict[str, bytes]) -> dict[str, bytes]:
    folders = {str(parent) for path in files for parent in Path(path).parents}
    return {path: data for path, data in files.items() if path not in folders}


folders = st.dictionaries(_paths, st.binary(max_size=40), max_size=6).map(_without_files_as_folders)


def write(folder: Path, files: Files) -> Path:
    folder.mkdir()
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def read(folder: Path) -> dict[str, bytes]:
    return {path: (folder / path).read_bytes() for path in scan(folder)}


@pytest.fixture
def blobs(tmp_path: Path) -> LocalBlobs:
    return LocalBlobs(tmp_path / "blobs")


@pytest.fixture
def trees(blobs: LocalBlobs) -> Trees:
    return Trees(blobs)


@given(files=folders)
def test_a_folder_put_and_checked_out_has_the_same_files(files: Files) -> None:
    with quick_folder() as root:
        trees = Trees(LocalBlobs(root / "blobs"))
        digest = trees.put(write(root / "in", files))
        trees.checkout(digest, root / "out")
        assert read(root / "out") == files
        assert {entry.path: trees.read(digest, entry.path) for entry in trees.entries(digest)} == files
        assert trees.is_present(digest)
        trees.verify(digest)


@given(files=folders, data=st.data())
def test_the_digest_does_not_depend_on_the_order_files_were_made_in(files: Files, data: st.DataObject) -> None:
    shuffled = dict(data.draw(st.permutations(list(files.items()))))
    with quick_folder() as root:
        stored = Trees(LocalBlobs(root / "blobs")).put(write(root / "one", files))
        assert tree_digest(write(root / "two", shuffled)) == stored


@given(files=folders.filter(bool), data=st.data())
def test_every_change_of_a_file_changes_the_digest(files: dict[str, bytes], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(files)))
    with quick_folder() as root:
        folder = write(root / "tree", files)
        before = tree_digest(folder)
        (folder / path).write_bytes(files[path] + b"x")
        assert tree_digest(folder) != before
        (folder / path).rename(folder / "moved")
        (folder / "moved").write_bytes(files[path])
        assert tree_digest(folder) != before


def test_the_format_stays_what_it_was(trees: Trees, blobs: LocalBlobs, tmp_path: Path) -> None:
    digest = trees.put(write(tmp_path / "in", {"b": b"", "a/x": b"abc"}))
    assert blobs.read_bytes(digest) == (
        b'{"entries":[["a/x",3,"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],'
        b'["b",0,"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]],'
        b'"type":"ftpipeline.tree","version":1}'
    )


def test_empty_folders_are_not_part_of_a_tree(trees: Trees, tmp_path: Path) -> None:
    empty = trees.put(write(tmp_path / "in", {}))
    (tmp_path / "in" / "folder").mkdir()
    assert trees.put(tmp_path / "in") == empty
    trees.checkout(empty, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


# --- what a tree may not hold ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.symlink_to("file"), "is a link"),
        (lambda path: path.symlink_to(path.parent, target_is_directory=True), "is a link"),
        (lambda path: path.symlink_to("nowhere"), "is a link"),
        (os.mkfifo, "is not a regular file"),
    ],
    ids=["file link", "folder link", "dangling link", "pipe"],
)
def test_links_and_special_files_are_refused_by_name(
    trees: Trees, blobs: LocalBlobs, tmp_path: Path, make: Callable[[Path], None], problem: str
) -> None:
    folder = write(tmp_path / "in", {"sub/file": b"x"})
    make(folder / "sub" / "odd")
    with pytest.raises(TreeError, match=f"'sub/odd' .* {problem}"):
        trees.put(folder)
    assert not blobs.root.exists()


@pytest.mark.parametrize("names", [("File", "file"), ("é", "e\u0301"), ("straße", "STRASSE"), ("A/x", "a/y")])
def test_names_that_collide_by_case_or_unicode_form_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    folder = write(tmp_path / "in", dict.fromkeys(names, b""))
    with pytest.raises(TreeError, match="collide"):
        scan(folder)


@pytest.mark.parametrize("name", [b"back\\slash", b"not utf-8 \xff"])
def test_names_without_one_meaning_everywhere_are_refused(tmp_path: Path, name: bytes) -> None:
    folder = write(tmp_path / "in", {})
    (folder / os.fsdecode(name)).touch()
    with pytest.raises(TreeError, match="rename the file"):
        tree_digest(folder)


def test_only_a_folder_can_be_a_tree(trees: Trees, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "absent"):
        with pytest.raises(TreeError, match="not a folder"):
            trees.put(path)


X = of_bytes(b"x")


def encoded(*rows: object, **header: object) -> bytes:
    return canonical_json({"type": "ftpipeline.tree", "version": 1, "entries": rows, **header})


@pytest.mark.parametrize(
    "data",
    [
        encoded(["/abs", 1, X]),
        encoded(["a/../../b", 1, X]),
        encoded(["./a", 1, X]),
        encoded(["a//b", 1, X]),
        encoded(["", 1, X]),
        encoded(["a\\b", 1, X]),
        encoded(["a\0b", 1, X]),
        encoded(["b", 1, X], ["a", 1, X]),
        encoded(["a", 1, X], ["a", 1, X]),
        encoded(["A", 1, X], ["a", 1, X]),
        encoded(["e\u0301", 1, X], ["é", 1, X]),
        encoded(["a", 1, X], ["a/b", 1, X]),
        encoded(["a", -1, X]),
        encoded(["a", True, X]),
        encoded(["a", 1.5, X]),
        encoded(["a", 1, "sha256:short"]),
        encoded(["a", 1]),
        encoded(version=2),
        encoded(type="other"),
        encoded(more=1),
        encoded(["a", 1, X]) + b"\n",
        b'{"entries":[["\\ud800",1,"%s"]],"type":"ftpipeline.tree","version":1}' % X.encode(),
        b'{"entries":{},"type":"ftpipeline.tree","version":1}',
        b"[]",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_blob_that_is_no_proper_tree_is_refused(trees: Trees, blobs: LocalBlobs, tmp_path: Path, data: bytes) -> None:
    digest = blobs.put_bytes(data)
    blobs.put_bytes(b"x")
    for use in (trees.entries, trees.verify, trees.is_present, lambda d: trees.checkout(d, tmp_path / "out")):
        with pytest.raises(TreeError):
            use(digest)
    assert not (tmp_path / "out").exists()


# --- checking out ---------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(trees: Trees, tmp_path: Path) -> Digest:
    return trees.put(write(tmp_path / "in", {"a": b"aaa", "sub/b": b"bb"}))


def test_a_checkout_fills_an_empty_folder(trees: Trees, stored: Digest, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    trees.checkout(stored, tmp_path / "out")
    assert read(tmp_path / "out") == {"a": b"aaa", "sub/b": b"bb"}


def test_a_checkout_never_mixes_with_other_files(trees: Trees, stored: Digest, tmp_path: Path) -> None:
    write(tmp_path / "out", {"mine": b"x"})
    with pytest.raises(StoreError, match="new or empty folder"):
        trees.checkout(stored, tmp_path / "out")
    assert read(tmp_path / "out") == {"mine": b"x"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs", "in", "out"]


def test_a_checkout_of_a_damaged_tree_leaves_nothing(
    trees: Trees, blobs: LocalBlobs, stored: Digest, tmp_path: Path
) -> None:
    blobs.path(of_bytes(b"bb")).unlink()
    with pytest.raises(CorruptArtifactError, match="missing"):
        trees.checkout(stored, tmp_path / "new" / "out")
    assert read(tmp_path / "new") == {}
    assert list((tmp_path / "new").iterdir()) == []


def test_an_unknown_file_of_a_tree_is_named(trees: Trees, stored: Digest) -> None:
    with pytest.raises(UnknownNameError, match="'absent'"):
        trees.read(stored, "absent")


# --- damage ---------------------------------------------------------------------------------------------------------


def test_a_corrupt_member_names_the_tree_and_who_needs_it(blobs: LocalBlobs, stored: Digest, tmp_path: Path) -> None:
    trees = Trees(blobs, dependants=lambda digest: [f"made from {digest}"])
    member = of_bytes(b"bb")
    blobs.path(member).chmod(0o644)
    blobs.path(member).write_bytes(b"xx")
    for use in (trees.verify, lambda d: trees.read(d, "sub/b"), lambda d: trees.checkout(d, tmp_path / "out")):
        with pytest.raises(CorruptArtifactError, match="altered") as caught:
            use(stored)
        assert caught.value.digest == member
        assert caught.value.dependants == (stored, f"made from {stored}")
    assert trees.is_present(stored)  # the size is right, and presence does not hash


@pytest.mark.parametrize("data", [b"aaa", b"bb"])
def test_a_tree_with_a_missing_or_truncated_member_is_not_present(
    trees: Trees, blobs: LocalBlobs, stored: Digest, data: bytes
) -> None:
    path = blobs.path(of_bytes(data))
    path.chmod(0o644)
    path.write_bytes(data[:-1])
    assert not trees.is_present(stored)
    path.unlink()
    assert not trees.is_present(stored)


def test_a_tree_that_was_never_stored_is_not_present(trees: Trees) -> None:
    assert not trees.is_present(X)


def test_a_tree_that_states_a_wrong_size_does_not_verify(trees: Trees, blobs: LocalBlobs) -> None:
    digest = blobs.put_bytes(encoded(["a", 2, blobs.put_bytes(b"x")]))
    with pytest.raises(CorruptArtifactError, match="wrong about the size of 'a'"):
        trees.verify(digest)


def test_entries_state_path_size_and_digest(trees: Trees, stored: Digest) -> None:
    assert trees.entries(stored) == (
        TreeEntry("a", 3, of_bytes(b"aaa")),
        TreeEntry("sub/b", 2, of_bytes(b"bb")),
    )
