from collections.abc import Callable

import pytest

from ftpipeline.digest import canonical_json, of_bytes, parse
from ftpipeline.errors import (
    CorruptArtifactError,
    GateRecordError,
    InputError,
    QuarantinedError,
    StaleGenerationError,
    TransitionError,
    UnknownNameError,
)
from ftpipeline.registry.stages import Stage
from ftpipeline.store.database import Database
from ftpipeline.store.quarantine import Quarantine
from ftpipeline_tests.registry.world import NAME, WHO, Who, World


def test_an_entry_goes_through_every_stage_and_retires_its_predecessor(world: World) -> None:
    world.release("a")
    world.register("b")
    for stage in ("shadow", "canary", "production"):
        moved = world.promote("b", stage)
        assert moved == world.registry.resolve(NAME, stage)
        assert moved.digest == world.artifact("b")
    assert moved.generation == 2
    assert (world.stage("a"), world.stage("b")) == (Stage.RETIRED, Stage.PRODUCTION)


def test_the_pointer_that_is_left_is_cleared_and_counted(world: World) -> None:
    world.register("a")
    world.promote("a", "shadow")
    assert (world.holds("candidate"), world.generation("candidate")) == (None, 2)
    assert (world.holds("shadow"), world.generation("shadow")) == (world.artifact("a"), 1)


def test_a_first_release_may_go_straight_to_production_and_no_other(world: World) -> None:
    world.register("a")
    world.register("b")
    assert world.promote("a", "production").generation == 1
    with pytest.raises(TransitionError, match="shadow, rejected"):
        world.promote("b", "production")
    assert world.holds("production") == world.artifact("a")


@pytest.mark.parametrize(
    ("to", "expect"), [("canary", 0), ("production", 1), ("candidate", 3), ("rejected", 0), ("retired", 0)]
)
def test_a_stage_cannot_be_skipped_or_gone_back_to(world: World, to: str, expect: int) -> None:
    world.release("a")
    world.register("b")
    with pytest.raises(TransitionError):
        world.promote("b", to, expect)
    assert world.stage("b") == Stage.CANDIDATE


def test_a_promotion_from_an_older_generation_is_told_what_stands_now(world: World) -> None:
    world.release("a")
    world.register("b")
    world.promote("b", "shadow", expect=0)
    world.register("c")
    with pytest.raises(StaleGenerationError, match=f"generation 1, not 0, and holds {world.artifact('b')}") as stale:
        world.promote("c", "shadow", expect=0)
    assert (stale.value.expected, stale.value.actual) == (0, 1)
    assert world.stage("c") == Stage.CANDIDATE


def test_what_is_measured_in_shadow_is_not_pushed_out(world: World) -> None:
    world.register("a")
    world.register("b")
    world.promote("a", "shadow")
    with pytest.raises(TransitionError, match="promote or reject that one first"):
        world.promote("b", "shadow")
    world.registry.reject(NAME, world.artifact("a"), **WHO)
    assert world.promote("b", "shadow").generation == 3


def test_a_gate_against_another_production_promotes_nothing(world: World) -> None:
    world.release("a")
    world.register("b")
    world.register("c")
    for stage in ("shadow", "canary", "production"):
        world.promote("b", stage)
    with pytest.raises(GateRecordError, match=r"generation 1, now it is 2 .*; run the week again"):
        world.promote("c", "shadow")
    assert world.holds("shadow") is None


def test_the_same_production_at_a_later_generation_is_not_the_one_gated_against(world: World) -> None:
    world.release("a")
    world.register("c")
    world.release("b")
    world.registry.rollback(NAME, **WHO)
    assert world.holds("production") == world.artifact("a")
    with pytest.raises(GateRecordError, match="run the week again"):
        world.promote("c", "shadow")


def test_a_rejected_entry_is_never_promoted(world: World) -> None:
    world.register("a", "fail")
    with pytest.raises(TransitionError, match="rejected may go to nothing"):
        world.promote("a", "shadow")


def test_an_artifact_that_does_not_verify_is_not_promoted(world: World) -> None:
    world.register("a")
    world.damage("a")
    with pytest.raises(CorruptArtifactError):
        world.promote("a", "shadow")
    assert world.holds("shadow") is None


@pytest.mark.parametrize("blank", [Who(reason=" ", actor="ana"), Who(reason="better", actor="")])
def test_a_move_without_reason_or_actor_is_refused(world: World, blank: Who) -> None:
    world.register("a")
    moves: list[Callable[[], object]] = [
        lambda: world.registry.promote(NAME, world.artifact("a"), "shadow", expect=0, **blank),
        lambda: world.registry.reject(NAME, world.artifact("a"), **blank),
        lambda: world.registry.rollback(NAME, **blank),
    ]
    for move in moves:
        with pytest.raises(InputError, match="actor and a reason"):
            move()
    assert len(world.registry.history(NAME)) == 1


def test_a_rejection_by_a_person_is_kept_with_its_reason(world: World) -> None:
    world.register("a")
    entry = world.registry.reject(NAME, world.artifact("a"), "confuses two queues", "ana")
    assert entry.stage == Stage.REJECTED
    assert entry.reasons == ({"code": "rejected_by_person", "message": "confuses two queues"},)
    assert (world.holds("candidate"), world.generation("candidate")) == (None, 2)
    with pytest.raises(TransitionError):
        world.registry.reject(NAME, world.artifact("a"), **WHO)


def test_production_is_not_rejected(world: World) -> None:
    world.release("a")
    with pytest.raises(TransitionError, match="production may go to retired"):
        world.registry.reject(NAME, world.artifact("a"), **WHO)


def test_one_move_is_one_row_of_history(world: World) -> None:
    world.release("a")
    world.release("b")
    moves = [(row.from_stage, row.to_stage, row.generation) for row in world.registry.history(NAME)]
    assert moves == [
        (None, "candidate", 1),
        ("candidate", "production", 1),
        (None, "candidate", 3),
        ("candidate", "shadow", 1),
        ("shadow", "canary", 1),
        ("canary", "production", 2),
    ]
    last = world.registry.history(NAME)[-1]
    assert (last.digest, last.actor, last.reason) == (world.artifact("b"), WHO["actor"], WHO["reason"])
    assert last.receipt == world.registry.entry(NAME, world.artifact("b")).gate
    assert last.time.endswith("+00:00")


@pytest.mark.parametrize("prefix", ["sha256:", ""])
def test_an_artifact_may_be_named_by_the_beginning_of_its_digest(world: World, prefix: str) -> None:
    entry, _ = world.register("a")
    digits = entry.artifact.removeprefix("sha256:")
    assert world.registry.entry(NAME, prefix + digits[:12]) == entry
    assert world.registry.promote(NAME, prefix + digits[:12], "shadow", expect=0, **WHO).digest == entry.artifact


@pytest.mark.parametrize("text", ["3", "03", "", "latest", "sha256:", "0" * 12, "sha256:" + "0" * 64, "%" * 12])
def test_what_names_no_artifact_is_unknown(world: World, text: str) -> None:
    world.register("a")
    with pytest.raises(UnknownNameError):
        world.registry.entry(NAME, text)


def test_a_beginning_that_two_artifacts_share_is_refused(world: World) -> None:
    for last in "01":
        artifact = parse("sha256:" + "a" * 63 + last)
        report = world.tree("candidate.json", canonical_json({"artifact": artifact}))
        gate = world.gate("a", candidate=artifact)
        world.sign(gate, report)
        world.registry.register(**world.arguments("a", gate, artifact=artifact, report=report))
    with pytest.raises(UnknownNameError, match="give more of the digest"):
        world.registry.entry(NAME, "a" * 20)


def test_an_unknown_name_is_said_to_be_unknown(world: World) -> None:
    for ask in (
        lambda: world.registry.history("nobody"),
        lambda: world.registry.resolve("nobody", "production"),
        lambda: world.registry.rollback("nobody", **WHO),
        lambda: world.registry.promote("nobody", world.artifact("a"), "shadow", expect=0, **WHO),
    ):
        with pytest.raises(UnknownNameError, match="nobody"):
            ask()


def test_a_quarantined_artifact_is_neither_registered_nor_promoted_nor_resolved_nor_rolled_back_to(
    world: World, database: Database
) -> None:
    quarantine, receipt = Quarantine(database), of_bytes(b"receipt")
    world.release("a")
    quarantine.mark(world.artifact("b"), receipt, "its job diverged")
    with pytest.raises(QuarantinedError, match="its job diverged"):
        world.register("b")
    world.release("c")
    quarantine.mark(world.artifact("a"), receipt, "its job diverged")
    with pytest.raises(QuarantinedError):
        world.registry.rollback(NAME, **WHO)
    assert world.holds("production") == world.artifact("c")
    world.register("d")
    quarantine.mark(world.artifact("d"), receipt, "its job diverged")
    with pytest.raises(QuarantinedError):
        world.promote("d", "shadow")
    quarantine.mark(world.artifact("c"), receipt, "its job diverged")
    with pytest.raises(QuarantinedError):
        world.registry.resolve(NAME, "production")
