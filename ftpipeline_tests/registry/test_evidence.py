"""What a registration must bring with it, and what an artifact was made from."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from ftpipeline.digest import Digest, canonical_json, of_bytes, of_json
from ftpipeline.errors import (
    BaseModelMismatchError,
    ForeignReportError,
    ManifestError,
    QuarantinedError,
    ReplayedGateError,
    StaleEvalSetError,
    StaleGateError,
)
from ftpipeline.records import LineageRecord
from ftpipeline.store.quarantine import Quarantine
from ftpipeline.store.results import StepResults
from ftpipeline_tests.registry.world import BASE, NAME, WHO, World

RECEIPT = of_bytes(b"receipt")


def made(world: World, output: Digest, *inputs: Digest) -> None:
    """Record that a step made `output` from `inputs`."""
    now = datetime.now(UTC)
    record = LineageRecord(
        step="export",
        key=of_json([output, *inputs]),
        code=of_bytes(b"code"),
        inputs={f"input_{index}": digest for index, digest in enumerate(inputs)},
        params={"plain": {}, "typed": {}},
        output=output,
        facts={},
        run_id="run",
        isolation="enforced",
        started=now,
        finished=now,
        cpu_seconds=0.0,
        environment=of_bytes(b"environment"),
    )
    StepResults(world.database).record(record)


def test_a_base_model_that_the_manifest_does_not_pin_is_refused(world: World) -> None:
    arguments = world.arguments("a", world.gate("a"), base_model=of_bytes(b"another base of equal shape"))
    with pytest.raises(BaseModelMismatchError, match=f"pins base model {BASE}"):
        world.registry.register(**arguments)
    assert world.registry.names() == []


@pytest.mark.parametrize("base", [None, {}, {"tree_sha256": None}, "latest"])
def test_a_manifest_that_pins_no_base_model_is_refused(world: World, base: object) -> None:
    loose = world.manifest("a", base_model=base)
    arguments = world.arguments("a", world.gate("a", manifest=loose), manifest=loose)
    with pytest.raises((ManifestError, BaseModelMismatchError)):
        world.registry.register(**arguments)
    assert world.registry.names() == []


def test_a_report_about_another_artifact_is_refused(world: World) -> None:
    with pytest.raises(ForeignReportError, match=f"is about {world.artifact('b')}"):
        world.registry.register(**world.arguments("a", world.gate("a"), report=world.report("b")))
    assert world.registry.names() == []


@pytest.mark.parametrize("report", [b"{}", b"[]", b"not JSON", canonical_json({"artifact": 3})])
def test_a_report_about_nothing_is_refused(world: World, report: bytes) -> None:
    tree = world.tree("candidate.json", report)
    with pytest.raises(ForeignReportError):
        world.registry.register(**world.arguments("a", world.gate("a"), report=tree))
    assert world.registry.names() == []


def test_a_gate_on_an_older_version_of_an_eval_set_promotes_nothing(world: World) -> None:
    world.register("a")
    world.new_eval_set("task", "v10")
    with pytest.raises(StaleEvalSetError, match=r"task v1 .*newest version is v10 .*; run the week again"):
        world.promote("a", "production")
    assert world.holds("production") is None


@pytest.mark.parametrize("reference", ["evalset://task/v1", "evalset://unheard-of/v1@" + RECEIPT, 3])
def test_eval_sets_that_are_not_pinned_or_not_known_promote_nothing(world: World, reference: object) -> None:
    sets = dict.fromkeys(("task", "regression", "safety"), reference)
    manifest = world.manifest("a", eval_sets=sets)
    gate = world.gate("a", manifest=manifest)
    world.registry.register(**world.arguments("a", gate, manifest=manifest))
    with pytest.raises((ManifestError, StaleEvalSetError)):
        world.promote("a", "production")
    assert world.holds("production") is None


def test_a_gate_record_that_a_newer_one_replaced_is_not_taken_again(world: World) -> None:
    old = world.gate("a")
    world.registry.register(**world.arguments("a", old))
    world.release("b")
    renewed, _ = world.register("a")
    with pytest.raises(ReplayedGateError, match=f"was replaced by {renewed.gate}"):
        world.registry.register(**world.arguments("a", old))
    assert world.registry.entry(NAME, world.artifact("a")) == renewed


def test_a_gate_record_of_a_rejected_entry_does_not_bring_it_back(world: World) -> None:
    passed = world.gate("a")
    world.registry.register(**world.arguments("a", passed))
    world.release("b")
    world.register("a", "fail")
    with pytest.raises(ReplayedGateError):
        world.registry.register(**world.arguments("a", passed))
    assert world.stage("a") == "rejected"


def test_nothing_is_done_with_what_was_made_from_something_under_quarantine(world: World) -> None:
    world.release("z")
    world.release("y")
    world.register("b")
    adapter, checkpoint = of_bytes(b"adapter"), of_bytes(b"checkpoint")
    for label in "abzy":
        made(world, world.artifact(label), adapter)
    made(world, adapter, checkpoint)
    Quarantine(world.database).mark(checkpoint, RECEIPT, "its job diverged")
    moves: list[Callable[[], object]] = [
        lambda: world.register("a"),
        lambda: world.promote("b", "shadow"),
        lambda: world.registry.rollback(NAME, **WHO),
        lambda: world.registry.resolve(NAME, "production"),
        lambda: world.opened().resolve(NAME, "production"),
        lambda: world.registry.entry_at(NAME, "production"),
    ]
    for move in moves:
        with pytest.raises(QuarantinedError, match=r"was made from it") as refused:
            move()
        assert refused.value.digest == checkpoint
    assert world.holds("production") == world.artifact("y")


def test_a_mark_on_something_else_or_a_lifted_one_is_in_nobodys_way(world: World) -> None:
    adapter = of_bytes(b"adapter")
    made(world, world.artifact("a"), adapter)
    quarantine = Quarantine(world.database)
    quarantine.mark(of_bytes(b"another adapter"), RECEIPT, "its job diverged")
    quarantine.mark(adapter, RECEIPT, "its job diverged")
    with pytest.raises(QuarantinedError):
        world.register("a")
    quarantine.lift(adapter, of_bytes(b"lifted"), "it was another job")
    world.release("a")
    assert world.registry.resolve(NAME, "production").digest == world.artifact("a")


def test_a_gate_against_an_older_generation_of_production_promotes_nothing(world: World) -> None:
    world.release("a")
    world.register("c")
    world.release("b")
    with pytest.raises(StaleGateError, match="generation 1, now it is 2"):
        world.promote("c", "shadow")
    assert world.holds("shadow") is None
