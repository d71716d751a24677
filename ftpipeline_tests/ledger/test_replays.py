"""Replays in the ledger: they alone pass over quarantine, mark by mark, and what they train is not kept."""

import pytest

from ftpipeline.digest import Digest
from ftpipeline.errors import InputError, LeaseLostError, QuarantinedError, UnknownNameError
from ftpipeline.ledger.events import CloseReason, Draft, Kind, Use
from ftpipeline.ledger.quarantined import attempt_digest
from ftpipeline_tests.ledger.world import TTL, World, saved
from ftpipeline_tests.store.rows import digest, put_tree

REPLAY_OF = {"job_id": "b", "incident": "feedfeedfeedfeed", "arm": "as_recorded", "seed": 8}


@pytest.fixture
def tree(world: World) -> Digest:
    """A checkpoint of job `a` that is under quarantine, by itself and with its attempt, by two incidents."""
    a = world.open("a")
    made: Digest = world.save(a, 10).payload["tree"]
    a.close(CloseReason.HALTED)
    world.quarantine.mark(made, digest("first"), "diverged")
    world.quarantine.mark(attempt_digest("a", 1), digest("second"), "diverged again")
    return made


def test_a_replay_reads_what_is_under_quarantine_and_names_each_mark_that_it_passes_over(
    world: World, tree: Digest
) -> None:
    marks = {digest("first"), digest("second")}
    consumed = world.open("replay", replay_of=REPLAY_OF).consume("a", 10, Use.MERGE, 12, 1, marks)
    assert consumed.tree == tree
    assert consumed.event.payload["despite"] == sorted(marks)
    world.another().verify("replay")


@pytest.mark.parametrize("named", [(), ("first",), ("second",), ("first", "another")])
def test_a_mark_that_a_replay_does_not_name_holds_for_it(world: World, tree: Digest, named: tuple[str, ...]) -> None:
    writer = world.open("replay", replay_of=REPLAY_OF)
    with pytest.raises(QuarantinedError):
        writer.consume("a", 10, Use.MERGE, 12, 1, {digest(name) for name in named})
    assert len(world.ledger.events("replay")) == 1


def test_no_other_job_passes_over_a_mark(world: World, tree: Digest) -> None:
    writer = world.open("b")
    with pytest.raises(InputError, match="replays no job"):
        writer.consume("a", 10, Use.MERGE, 12, 1, {digest("first"), digest("second")})
    assert len(world.ledger.events("b")) == 1


def test_a_replay_saves_nothing(world: World) -> None:
    writer = world.open("replay", replay_of=REPLAY_OF)
    with pytest.raises(InputError, match="not kept"):
        writer.append([saved(10, put_tree(world.trees, weights=b"tainted"))])
    assert len(world.ledger.events("replay")) == 1


def test_only_what_opened_as_a_replay_is_one(world: World) -> None:
    world.open("replay", replay_of=REPLAY_OF)
    world.open("a")
    assert {head.job_id: head.is_replay for head in world.ledger.jobs()} == {"a": False, "replay": True}


def test_a_job_is_taken_only_while_nobody_has_it(world: World) -> None:
    trainer = world.open("a")
    with pytest.raises(LeaseLostError, match="wait for its end"):
        world.ledger.take("a", "somebody", TTL)
    trainer.close(CloseReason.HALTED)
    writer = world.ledger.take("a", "somebody", TTL)
    said = {"receipt": digest("receipt"), "action": "attribution"}
    writer.append([Draft(Kind.ISOLATION_ACTION, 0, 0.0, said)])
    world.another().verify("a")
    with pytest.raises(UnknownNameError):
        world.ledger.take("nobody", "somebody", TTL)
