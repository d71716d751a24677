"""Gate receipts: what the home signed is accepted, and nothing else speaks for a gate record."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ftpipeline.digest import canonical_json
from ftpipeline.errors import GateRecordError, VerificationError
from ftpipeline.receipts import SigningKey, verify
from ftpipeline.registry.gate_receipts import PREDICATE_TYPE, RECEIPT_FILE
from ftpipeline.registry.registry import Registry
from ftpipeline.registry.stages import Stage
from ftpipeline.store.opened import Store
from ftpipeline_tests.registry.world import KEY, World

OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


def unsigned(world: World, label: str, **changes: Any) -> dict[str, Any]:
    """Return what registers a gate record that nobody signed."""
    record = {
        "type": "ftpipeline/gate/v1",
        "candidate": world.artifact(label),
        "manifest": world.manifest(label),
        "production": {"digest": None, "generation": 0},
        "verdict": "first_release",
        "reasons": [],
        **changes,
    }
    return world.arguments(label, world.tree("gate.json", canonical_json(record)))


def test_a_receipt_is_bound_to_artifact_production_generation_sets_manifest_and_report(world: World) -> None:
    sets = {"task": world.artifact("set")}
    gate = world.gate("a", eval_sets=sets)
    receipt = world.receipts.check(gate, world.report("a"), KEY.public)
    statement = verify(world.trees.read(receipt, RECEIPT_FILE), KEY.public)
    assert statement.predicate_type == PREDICATE_TYPE
    assert {subject.name: subject.digest for subject in statement.subjects} == {
        "artifact": world.artifact("a"),
        "gate_record": gate,
    }
    said = statement.predicate
    assert (said["production"], said["eval_sets"]) == ({"digest": None, "generation": 0}, sets)
    assert (said["manifest"], said["report"]) == (world.manifest("a"), world.report("a"))


def test_issuing_twice_is_issuing_once(world: World) -> None:
    gate, report = world.gate("a"), world.report("a")
    assert world.receipts.issue(gate, report, "again", KEY) == world.receipts.check(gate, report, KEY.public)


def test_a_gate_record_that_nobody_signed_registers_nothing(world: World) -> None:
    with pytest.raises(GateRecordError, match="carries no receipt"):
        world.registry.register(**unsigned(world, "forged"))
    assert world.registry.entries() == []


def test_a_receipt_of_another_key_is_refused(world: World) -> None:
    arguments = unsigned(world, "a")
    world.receipts.issue(arguments["gate"], arguments["report"], "run", OTHER)
    with pytest.raises(VerificationError, match="is signed by key"):
        world.registry.register(**arguments)


def test_a_receipt_about_another_report_is_refused(world: World) -> None:
    arguments = unsigned(world, "a")
    world.receipts.issue(arguments["gate"], world.report("b"), "run", KEY)
    with pytest.raises(GateRecordError, match="does not speak of report"):
        world.registry.register(**arguments)


def test_the_receipt_of_one_record_does_not_speak_for_another(world: World) -> None:
    failed, passed = world.gate("a", "fail"), unsigned(world, "a")
    receipt = world.receipts.check(failed, world.report("a"), KEY.public)
    world.receipts._pointers.put("gate_receipt", passed["gate"], "forger", 0, receipt)
    with pytest.raises(GateRecordError, match="does not speak"):
        world.registry.register(**passed)


def test_a_promotion_verifies_the_receipt_again(world: World) -> None:
    entry, _ = world.register("a")
    world.receipts.issue(entry.gate, entry.report, "forger", OTHER)
    with pytest.raises(VerificationError, match="is signed by key"):
        world.promote("a", "production")
    assert world.holds("production") is None


def test_a_receipt_against_an_older_production_generation_promotes_nothing(world: World) -> None:
    world.release("a")
    world.register("b")
    world.register("c", week="2026-10-05")
    for stage in ("shadow", "canary", "production"):
        world.promote("b", stage)
    with pytest.raises(GateRecordError, match="made against production generation 1, now it is 2"):
        world.promote("c", "shadow")
    assert world.stage("c") is Stage.CANDIDATE


def test_a_registry_without_a_signers_key_takes_nothing_in(world: World) -> None:
    keyless = Registry(world.database, world.trees)
    with pytest.raises(GateRecordError, match="without a signer's key"):
        keyless.register(**world.arguments("a", world.gate("a")))


def test_the_registry_of_a_store_trusts_its_home_alone(store: Store, tmp_path: Path) -> None:
    world = World(store.database, store.home.store_root)
    arguments = world.arguments("a", world.gate("a"))
    registry = Registry.of_store(store)
    with pytest.raises(VerificationError):
        registry.register(**arguments)
    world.receipts.issue(arguments["gate"], arguments["report"], "run", SigningKey.of_home(store.home.root))
    assert registry.register(**arguments)[1]
