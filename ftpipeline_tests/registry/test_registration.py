from typing import Any

import pytest

from ftpipeline.digest import of_bytes
from ftpipeline.errors import CorruptArtifactError, GateRecordError, InputError, UnknownNameError
from ftpipeline.registry.stages import Stage
from ftpipeline_tests.registry.world import BASE, NAME, World, manifest


def test_a_passed_gate_makes_the_candidate_of_its_name(world: World) -> None:
    entry, is_new = world.register("a")
    assert is_new
    assert (entry.stage, entry.verdict, entry.reasons) == (Stage.CANDIDATE, "first_release", ())
    assert (entry.artifact, entry.manifest, entry.base_model) == (world.artifact("a"), manifest("a"), BASE)
    assert world.registry.resolve(NAME, "candidate").digest == entry.artifact
    assert world.registry.names() == [NAME]
    assert world.registry.entries(NAME) == world.registry.entries() == [entry]


def test_a_newer_candidate_takes_the_pointer_and_leaves_the_older_one_promotable(world: World) -> None:
    world.register("a")
    world.register("b")
    assert world.holds("candidate") == world.artifact("b")
    assert world.generation("candidate") == 2
    world.promote("a", "shadow")
    assert world.holds("candidate") == world.artifact("b")
    assert world.generation("candidate") == 2


@pytest.mark.parametrize("verdict", ["fail", "inconclusive", "refused"])
def test_every_verdict_against_is_registered_as_a_rejection(world: World, verdict: str) -> None:
    entry, is_new = world.register("a", verdict)
    assert is_new
    assert (entry.stage, entry.verdict) == (Stage.REJECTED, verdict)
    assert world.holds("candidate") is None


def test_a_rejection_keeps_the_reasons_of_the_gate(world: World) -> None:
    entry, _ = world.register("a", "fail")
    assert [reason["code"] for reason in entry.reasons] == ["task_gain_below_threshold"]


def test_registering_twice_changes_nothing(world: World) -> None:
    first, _ = world.register("a")
    before = world.registry.history(NAME)
    assert world.register("a") == (first, False)
    assert world.registry.history(NAME) == before


def test_a_rejection_is_terminal_for_that_manifest_only(world: World) -> None:
    rejected, _ = world.register("a", "fail")
    assert world.register("a") == (rejected, False)
    other = world.manifest("a", run_id="another")
    entry, is_new = world.registry.register(**world.arguments("a", world.gate("a", manifest=other), manifest=other))
    assert is_new
    assert entry.stage == Stage.CANDIDATE


def test_the_artifact_in_production_makes_no_new_entry(world: World) -> None:
    world.release("a")
    standing = world.registry.entry(NAME, world.artifact("a"))
    assert world.register("a", "already_production") == (standing, False)
    assert len(world.registry.entries()) == 1


def test_a_record_that_mistakes_production_is_refused(world: World) -> None:
    with pytest.raises(GateRecordError, match="run the week again"):
        world.register("a", "already_production")
    assert world.registry.names() == []


@pytest.mark.parametrize("field", ["candidate", "manifest"])
def test_a_gate_record_about_something_else_is_refused(world: World, field: str) -> None:
    with pytest.raises(GateRecordError, match="is about"):
        world.register("a", **{field: of_bytes(b"other")})
    assert world.registry.names() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "ftpipeline/gate/v2"},
        {"verdict": "passed"},
        {"verdict": "pass"},  # though there is no production
        {"production": None},
        {"production": {"digest": "latest", "generation": 0}},
        {"production": {"digest": None, "generation": True}},
        {"reasons": [{"code": "only"}]},
    ],
)
def test_a_gate_record_that_cannot_be_trusted_is_refused(world: World, changes: dict[str, Any]) -> None:
    with pytest.raises(GateRecordError, match="is not a gate record"):
        world.register("a", **changes)
    assert world.registry.names() == []


def test_a_gate_record_must_be_stored(world: World) -> None:
    with pytest.raises(CorruptArtifactError):
        world.registry.register(**world.arguments("a", of_bytes(b"no tree")))
    with pytest.raises(UnknownNameError, match=r"gate\.json"):
        world.registry.register(**world.arguments("a", world.artifact("a")))
    with pytest.raises(InputError, match="actor"):
        world.registry.register(**world.arguments("a", world.gate("a"), actor=" "))


def test_a_week_that_is_gated_anew_renews_its_entry(world: World) -> None:
    stale, _ = world.register("a")
    world.release("b")
    renewed, is_new = world.register("a")
    assert not is_new
    assert (renewed.id, renewed.stage, renewed.verdict) == (stale.id, Stage.CANDIDATE, "pass")
    last = world.registry.history(NAME)[-1]
    assert (last.from_stage, last.to_stage, last.receipt) == (Stage.CANDIDATE, Stage.CANDIDATE, renewed.gate)
    world.promote("a", "shadow")


def test_a_week_that_is_gated_anew_and_fails_is_rejected(world: World) -> None:
    world.register("a")
    world.release("b")
    entry, is_new = world.register("a", "fail")
    assert not is_new
    assert entry.stage == Stage.REJECTED
    assert [reason["code"] for reason in entry.reasons] == ["task_gain_below_threshold"]


def test_a_new_gate_does_not_move_what_production_holds(world: World) -> None:
    world.release("a")
    before = world.registry.entry(NAME, world.artifact("a"))
    assert world.register("a", "fail") == (before, False)
