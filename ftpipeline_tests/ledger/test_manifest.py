from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import Digest, of_json
from ftpipeline.errors import ChainError, UnknownNameError
from ftpipeline.ledger.events import CloseReason, Draft, Event, Kind, Use
from ftpipeline.ledger.manifest import consumption_ledger, manifest
from ftpipeline_tests.ledger.simulator import Fleet, Truth
from ftpipeline_tests.ledger.world import World, metrics, saved
from ftpipeline_tests.store.rows import digest


def fleet_of(random: Random, acts: int) -> Fleet:
    """Return a fleet that did so many things."""
    fleet = Fleet(random)
    for _ in range(acts):
        fleet.act()
    return fleet


def some_cut(fleet: Fleet, random: Random) -> dict[str, int]:
    """Return a cut of some of the jobs, each at any of its events."""
    jobs = [job for job in fleet.chains if random.random() < 0.8]
    return {job: random.randrange(len(fleet.chains[job])) for job in jobs}


def kept(job: str, truths: dict[str, Truth]) -> list[tuple[int, int, Digest]]:
    """Return the checkpoints that a job keeps: attempt, step and tree."""
    truth = truths[job]
    taken = {
        tree
        for other, its in truths.items()
        if other != job
        for producer, _, _, tree in its.consumed
        if producer == job
    }
    places = sorted(truth.saved)
    newest = places if truth.keep is None else places[-truth.keep :]
    needed = [place for place in places if place in newest or truth.saved[place] in {*taken, truth.resumed}]
    return [(*place, truth.saved[place]) for place in needed]


def described(job: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a manifest says of an open job, in the simulator's words."""
    state = job["state"]
    return (
        job["attempt"],
        job["step"],
        None if state["point"] is None else state["point"]["loss"],
        None if state["evaluation"] is None else state["evaluation"]["val_loss"],
        [(saved["attempt"], saved["step"], saved["tree"]) for saved in job["checkpoints"]],
        [(used["producer"], used["producer_attempt"], used["producer_step"], used["tree"]) for used in job["consumed"]],
    )


@given(st.randoms(use_true_random=False), st.integers(1, 120))
def test_at_every_cut_it_is_what_the_simulator_knows_of_the_open_jobs(random: Random, acts: int) -> None:
    fleet = fleet_of(random, acts)
    cut = some_cut(fleet, random)
    truths = {job: fleet.truths[job][place] for job, place in cut.items()}
    document = manifest({job: fleet.chains[job][: place + 1] for job, place in cut.items()})
    assert document["cut"] == {job: fleet.chains[job][place].digest for job, place in cut.items()}
    assert {job["job_id"]: described(job) for job in document["jobs"]} == {
        job: (truth.attempt, truth.step, truth.loss, truth.score, kept(job, truths), truth.consumed)
        for job, truth in truths.items()
        if truth.is_open
    }
    assert [job["job_id"] for job in document["closed"]] == sorted(job for job in truths if not truths[job].is_open)


@given(st.randoms(use_true_random=False), st.integers(1, 80))
def test_the_same_cut_has_the_same_root_and_another_cut_another(random: Random, acts: int) -> None:
    fleet = fleet_of(random, acts)
    cut = some_cut(fleet, random)
    chains = {job: fleet.chains[job][: place + 1] for job, place in cut.items()}
    thinned = {job: thin(events) for job, events in sorted(chains.items(), reverse=True)}
    for fold in (manifest, consumption_ledger):
        document = fold(chains)
        assert fold(thinned) == document
        assert document["root"] == of_json({name: part for name, part in document.items() if name != "root"})
        if longer := [job for job, place in cut.items() if place + 1 < len(fleet.chains[job])]:
            other = {**chains, longer[0]: fleet.chains[longer[0]][: cut[longer[0]] + 2]}
            assert fold(other)["root"] != document["root"]


def thin(events: list[Event]) -> list[Event]:
    """Leave out all metrics but the newest."""
    last = max((event.seq for event in events if event.kind is Kind.METRICS), default=None)
    return [event for event in events if event.kind is not Kind.METRICS or event.seq == last]


@given(st.randoms(use_true_random=False), st.integers(1, 80))
def test_the_consumption_ledger_has_every_consumption_and_names_those_from_beyond_the_cut(
    random: Random, acts: int
) -> None:
    fleet = fleet_of(random, acts)
    cut = some_cut(fleet, random)
    document = consumption_ledger({job: fleet.chains[job][: place + 1] for job, place in cut.items()})
    truths = {job: fleet.truths[job][place] for job, place in cut.items()}
    edges = [(edge["consumer"], edge["producer"], edge["tree"]) for edge in document["checkpoints"]]
    assert edges == [(job, used[0], used[3]) for job in sorted(truths) for used in truths[job].consumed]
    inside = {tree for truth in truths.values() for tree in truth.saved.values()}
    beyond = [edge["event"] for edge in document["checkpoints"] if edge["tree"] not in inside]
    assert document["beyond"] == beyond


def test_a_cut_of_the_database_is_the_same_now_and_later(world: World) -> None:
    a, b = world.open("a", keep=1), world.open("b")
    a.append([metrics(1), metrics(2)])
    world.save(a, 10)
    b.consume("a", 10, Use.REFERENCE, 3)
    world.save(a, 20)
    cut = {job.job_id: job.digest for job in world.ledger.jobs()}
    now, edges = world.ledger.manifest(), world.ledger.consumption_ledger()
    assert [job["job_id"] for job in now["jobs"]] == ["a", "b"]
    assert [saved["step"] for saved in now["jobs"][0]["checkpoints"]] == [10, 20]
    a.append([metrics(21), saved(30, digest("30"))])
    a.close(CloseReason.COMPLETED)
    b.append([Draft(Kind.EVALUATION, 4, 0.04, {"val_loss": 1.0})])
    later = world.another()
    assert (later.manifest(cut), later.consumption_ledger(cut)) == (now, edges)
    assert later.manifest()["root"] != now["root"]
    assert [job["job_id"] for job in later.manifest()["closed"]] == ["a"]


def test_a_cut_through_a_batch_of_metrics_knows_the_point_at_the_cut(world: World) -> None:
    a = world.open("a")
    a.append([metrics(1, 2), metrics(3, 4), metrics(5)])
    middle = world.ledger.events("a")[2]
    job = world.ledger.manifest({"a": middle.digest})["jobs"][0]
    assert (job["step"], job["state"]["point"]["step"], job["head"]["seq"]) == (4, 4, 2)


def test_a_cut_that_names_what_is_not_there_is_refused(world: World) -> None:
    world.open("a")
    with pytest.raises(UnknownNameError):
        world.ledger.manifest({"b": digest("event")})
    with pytest.raises(ChainError) as caught:
        world.ledger.manifest({"a": digest("event")})
    assert caught.value.state == "missing"


def test_without_jobs_it_is_empty(world: World) -> None:
    document = world.ledger.manifest()
    assert (document["jobs"], document["closed"], document["cut"]) == ([], [], {})
