"""An exported entry: complete, provable offline, whole or not at all, and apart from the store."""

import json
from pathlib import Path

import pytest

from ftpipeline.cycle.bundle_verify import verify_bundle
from ftpipeline.cycle.registry_export import export_entry
from ftpipeline.digest import canonical_json, of_bytes
from ftpipeline.errors import CorruptArtifactError, QuarantinedError, StoreError, UnknownNameError
from ftpipeline.receipts import PublicKey
from ftpipeline.registry.registry import Registry
from ftpipeline.store.opened import Store
from ftpipeline.store.trees import tree_digest
from ftpipeline_tests.cli.command import ftpipeline
from ftpipeline_tests.cycle.bundle_world import make_report, new_key
from ftpipeline_tests.registry.card_facts import MANIFEST, REPORT
from ftpipeline_tests.registry.world import BASE, NAME, World
from ftpipeline_tests.store.damage import lose

FILES = {"README.md", "artifact", "manifest.json", "reports", "gate", "registry.json", "lineage.tar", "lineage.pub.pem"}


@pytest.fixture
def world(store: Store) -> World:
    """A candidate whose lineage reaches a snapshot; every document about it is as a week leaves it."""
    world = World(store.database, store.home.store_root)
    artifact = make_report(store)
    base = {**MANIFEST["base_model"], "tree_sha256": BASE}
    manifest = world.manifest("a", **{**MANIFEST, "base_model": base})
    report = world.tree("candidate.json", canonical_json({**REPORT, "artifact": artifact}))
    gate = world.gate("a", candidate=artifact, manifest=manifest)
    world.sign(gate, report)
    arguments = world.arguments("a", gate, artifact=artifact, manifest=manifest, report=report)
    world.registry.register(**arguments)
    return world


def test_an_export_holds_bytes_evidence_and_card(store: Store, world: World, tmp_path: Path) -> None:
    key = new_key()
    done = export_entry(store, NAME, "candidate", tmp_path / "out", key)
    assert {path.name for path in done.folder.iterdir()} == FILES
    assert tree_digest(done.folder / "artifact") == done.entry.artifact
    assert tree_digest(done.folder / "reports") == done.entry.report
    assert tree_digest(done.folder / "gate") == done.entry.gate
    assert (done.folder / "manifest.json").read_bytes() == store.trees.read(done.entry.manifest, "manifest.json")
    registered = json.loads((done.folder / "registry.json").read_bytes())
    assert registered["entry"]["artifact"] == done.entry.artifact
    assert [row["to_stage"] for row in registered["history"]] == ["candidate"]
    assert done.entry.artifact in (done.folder / "README.md").read_text("utf-8")


def test_the_bundle_of_an_export_proves_the_artifact_without_a_home(store: Store, world: World, tmp_path: Path) -> None:
    done = export_entry(store, NAME, "candidate", tmp_path / "out", new_key())
    proof = verify_bundle(done.folder / "lineage.tar", PublicKey.read(done.folder / "lineage.pub.pem"))
    assert proof.root == done.entry.artifact


def test_editing_an_export_changes_nothing_in_the_store(store: Store, world: World, tmp_path: Path) -> None:
    done = export_entry(store, NAME, "candidate", tmp_path / "out", new_key())
    for file in (done.folder / "artifact").iterdir():
        file.write_bytes(b"edited")
    assert Registry.of_store(store).resolve(NAME, "candidate").digest == done.entry.artifact


def test_a_folder_that_holds_something_is_left_alone(store: Store, world: World, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(StoreError, match="give a new or empty folder"):
        export_entry(store, NAME, "candidate", tmp_path / "out", new_key())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
    assert not list(tmp_path.glob(".out*"))


def test_what_cannot_be_used_is_not_exported(store: Store, world: World, tmp_path: Path) -> None:
    digest = world.registry.resolve(NAME, "candidate").digest
    with pytest.raises(UnknownNameError):
        export_entry(store, NAME, "production", tmp_path / "out", new_key())
    store.quarantine.mark(digest, of_bytes(b"receipt"), "its job diverged")
    with pytest.raises(QuarantinedError):
        export_entry(store, NAME, "candidate", tmp_path / "out", new_key())
    store.quarantine.lift(digest, of_bytes(b"lifted"), "it was another job")
    lose(store, digest)
    with pytest.raises(CorruptArtifactError):
        export_entry(store, NAME, "candidate", tmp_path / "out", new_key())
    assert not list(tmp_path.glob("*out*"))


def test_the_verb_exports_what_a_name_and_stage_stand_for(store: Store, world: World, tmp_path: Path) -> None:
    home = ("--home", store.home.root)
    done = ftpipeline("registry", "export", f"{NAME}@candidate", tmp_path / "out", *home, "--json")
    assert done.code == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert done.document["entry"]["stage"] == "candidate"
    for reference, code in ((NAME, 2), (f"{NAME}@staging", 2), (f"{NAME}@production", 2)):
        refused = ftpipeline("registry", "export", reference, tmp_path / "other", *home)
        assert refused.code == code
        assert refused.stderr.count("\n") == 1
        assert not (tmp_path / "other").exists()


def test_the_verbs_reject_and_delete(store: Store, world: World) -> None:
    digest = world.registry.entries(NAME)[-1].artifact
    home = ("--reason", "it answers worse", "--home", store.home.root, "--json")
    refused = ftpipeline("registry", "delete", NAME, digest, *home)
    assert (refused.code, refused.stderr.count("\n")) == (1, 1)
    assert "ProtectedArtifactError" in refused.stderr
    assert ftpipeline("registry", "reject", NAME, digest, *home).document["stage"] == "rejected"
    assert ftpipeline("registry", "delete", NAME, digest, *home).document["stage"] == "deleted"
