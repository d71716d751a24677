"""Export: what a bundle holds and what it never holds, the same bytes every time, nothing half written."""

from pathlib import Path

import pytest

from ftpipeline.cycle.bundle import export_bundle
from ftpipeline.cycle.bundle_format import LINEAGE, STATEMENT, blob_name, decode
from ftpipeline.cycle.bundle_verify import verify_bundle
from ftpipeline.digest import of_bytes, of_file, parse_json
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.runner import Call, Runner
from ftpipeline.errors import CorruptArtifactError, EnvironmentProblemError, UnknownNameError
from ftpipeline.receipts import VerificationError
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_steps import RAW_ROW, WEIGHTS, WINDOW, manifest
from ftpipeline_tests.cycle.bundle_world import QUERY, RUN, Silent, make_report, make_snapshot, new_key, node_of
from ftpipeline_tests.store.damage import lose


def test_an_exported_bundle_verifies_and_ends_at_the_source_query(store: Store, tmp_path: Path) -> None:
    key, root = new_key(), make_report(store)
    info = export_bundle(store, root, tmp_path / "bundle.tar", key)
    proof = verify_bundle(info.path, key.public)
    assert (proof.root, proof.keyid) == (root, key.public.keyid) == (info.root, info.keyid)
    assert [node.step for node in proof.nodes] == ["evaluate", "train", "snapshot"]
    source = proof.to_json()["source"]
    expected = {"snapshot": make_snapshot(store), "query": QUERY, "query_sha256": of_bytes(QUERY.encode())}
    assert source == {**expected, "window": WINDOW}
    assert (info.digest, info.size, info.nodes) == (of_file(info.path), info.path.stat().st_size, 3)


def test_a_node_says_how_its_output_came_to_be(store: Store, tmp_path: Path) -> None:
    key, root = new_key(), make_report(store)
    members = decode(export_bundle(store, root, tmp_path / "bundle.tar", key).path.read_bytes())
    node = node_of(parse_json(members[LINEAGE]), "train")
    [record] = store.results.made(node["output"])
    assert (node["key"], node["code"], node["inputs"]) == (record.key, record.code, dict(record.inputs))
    assert (node["params"], node["manifest"]) == (record.params["typed"], record.manifest)
    assert (node["run_id"], node["libraries"]) == ("run-1", dict(record.libraries))


def test_a_bundle_holds_trees_records_manifest_and_report_and_no_row_or_weight(store: Store, tmp_path: Path) -> None:
    key, root = new_key(), make_report(store)
    info = export_bundle(store, root, tmp_path / "bundle.tar", key)
    members = decode(info.path.read_bytes())
    lineage = parse_json(members[LINEAGE])
    train, snapshot = node_of(lineage, "train"), node_of(lineage, "snapshot")
    trees = [root, train["output"], train["manifest"], snapshot["output"]]
    files = [(root, "report.json"), (train["manifest"], "manifest.json"), (snapshot["output"], "record.json")]
    blobs = [*trees, *(of_bytes(store.trees.read(tree, name)) for tree, name in files)]
    assert members.keys() == {LINEAGE, STATEMENT, *map(blob_name, blobs)}
    assert RAW_ROW not in info.path.read_bytes()
    assert WEIGHTS not in info.path.read_bytes()


def test_one_lineage_and_key_give_the_same_bytes(store: Store, tmp_path: Path) -> None:
    key, root = new_key(), make_report(store)
    first = export_bundle(store, root, tmp_path / "first.tar", key)
    second = export_bundle(store, root, tmp_path / "second.tar", key)
    assert first.digest == second.digest
    assert second == export_bundle(store, root, tmp_path / "second.tar", key)


def test_an_artifact_that_nothing_made_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        export_bundle(store, of_bytes(b"nothing"), tmp_path / "bundle.tar", new_key())


def test_an_artifact_that_descends_from_no_snapshot_has_no_bundle(store: Store, tmp_path: Path) -> None:
    made = Runner(store, Silent()).run(Call(BoundStep(manifest), {}, {"manifest": {}}), RUN)
    with pytest.raises(VerificationError, match="reaches no snapshot"):
        export_bundle(store, made.output, tmp_path / "bundle.tar", new_key())
    assert not list(tmp_path.glob("*bundle.tar*"))


def test_a_missing_record_is_named_and_nothing_is_written(store: Store, tmp_path: Path) -> None:
    snapshot = make_snapshot(store)
    record = of_bytes(store.trees.read(snapshot, "record.json"))
    lose(store, record)
    with pytest.raises(CorruptArtifactError) as refused:
        export_bundle(store, snapshot, tmp_path / "bundle.tar", new_key())
    assert refused.value.digest == record
    assert not list(tmp_path.glob("*bundle.tar*"))


def test_a_target_that_cannot_be_written_is_named(store: Store, tmp_path: Path) -> None:
    root = make_snapshot(store)
    with pytest.raises(EnvironmentProblemError, match=r"no-such-folder/bundle\.tar"):
        export_bundle(store, root, tmp_path / "no-such-folder" / "bundle.tar", new_key())
    (tmp_path / "folder").mkdir()
    with pytest.raises(EnvironmentProblemError, match="folder"):
        export_bundle(store, root, tmp_path / "folder", new_key())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "home"]
