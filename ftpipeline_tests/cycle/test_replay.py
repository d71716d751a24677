"""Replays of exposed jobs: which cause they speak for, what they leave behind, and what they must not."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.backends.protocol import Message
from ftpipeline.cycle.attributions import upgraded
from ftpipeline.cycle.counterfactual import case_of
from ftpipeline.cycle.fleet import fleet_of
from ftpipeline.cycle.incident import Incident
from ftpipeline.cycle.ledger_bundle import export_ledger
from ftpipeline.cycle.ledger_bundle_verify import verify_ledger_bytes
from ftpipeline.cycle.replay_records import ATTRIBUTION, Replayed
from ftpipeline.cycle.watch import signer_of, watch
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError, LeaseLostError, UnknownNameError
from ftpipeline.guard.attribute import Arm, Cause
from ftpipeline.ledger.events import Kind
from ftpipeline.receipts import verify
from ftpipeline.store.home import Home
from ftpipeline_tests.cycle.replay_world import ReplayWorld, merge

FORMATS = Path(__file__).resolve().parents[2] / "docs" / "formats"
LAST_GOOD, CLEAN, TAINTED, MERGED_AT = 10, 10, 15, 12
"""Steps: A is good up to step 10, its checkpoint of step 15 is tainted, and who merges it does so before step 12."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayWorld]:
    """A wrecks itself; W and C merge the wreck and diverge; H merges what only seems a wreck.

    I explodes by itself after it merged what is clean; V begins with the wreck.
    """
    folder = tmp_path_factory.mktemp("replays")
    with closing(Home(folder / "home").open()) as store:
        (folder / "work").mkdir()
        made = ReplayWorld(store, folder / "work")
        for job_id, scale in (("A", 300.0), ("S", 1.0)):
            made.train(job_id, max_steps=CLEAN)
            made.save(job_id, TAINTED, scale)
        for job_id, seed in (("W", 7), ("C", 99)):
            made.train(job_id, seed=seed, consumes=[merge("A", TAINTED, MERGED_AT)])
        made.train("H", consumes=[merge("S", TAINTED, MERGED_AT)])
        made.train("I", lr=3.0, scheduler="linear", warmup_steps=60, consumes=[merge("A", CLEAN, 6)])
        made.train("V", max_steps=6, consumes=[{"use": "warm_start", "job": "A", "step": TAINTED}])
        for job_id, last_good in (("A", LAST_GOOD), ("S", LAST_GOOD), ("I", 5)):
            made.isolate(job_id, last_good)
        yield made


@pytest.fixture(scope="module")
def wrecked(world: ReplayWorld) -> tuple[Replayed, Digest]:
    """The replays of W, and their receipt."""
    return world.replayer().replay("W", "run")


def counts(made: Replayed) -> dict[str, tuple[int, int]]:
    return {arm: (each["diverged"], each["runs"]) for arm, each in made.outcomes.items()}


def test_a_job_that_diverges_only_through_the_merge_of_a_wreck_has_an_external_cause(
    wrecked: tuple[Replayed, Digest],
) -> None:
    made, _ = wrecked
    assert counts(made) == {"as_recorded": (3, 3), "clean_producer": (0, 3), "without_input": (0, 3)}
    assert made.attribution.cause is Cause.EXTERNAL_SUPPORTED
    assert made.case.start is not None
    assert (made.case.start.job_id, made.case.start.step) == ("W", 10)


def test_a_job_whose_own_learning_rate_explodes_has_an_internal_cause(world: ReplayWorld) -> None:
    made, _ = world.replayer().replay("I", "run")
    assert counts(made) == {"as_recorded": (3, 3), "without_input": (3, 3)}  # nothing is wrong with what it read
    assert made.attribution.cause is Cause.INTERNAL_SUPPORTED


def test_a_divergence_that_does_not_come_back_is_not_reproduced(world: ReplayWorld) -> None:
    made, _ = world.replayer().replay("H", "run")
    assert counts(made) == {"as_recorded": (0, 3), "clean_producer": (0, 3), "without_input": (0, 3)}
    assert made.attribution.cause is Cause.NOT_REPRODUCED


def test_what_was_read_before_the_first_step_is_replayed_from_the_beginning(world: ReplayWorld) -> None:
    case = case_of(world.store, world.ledger, "V")
    assert case.start is None
    read = {arm: [(source.job_id, source.step) for source in reads.values()] for arm, reads in case.arms.items()}
    assert read == {
        Arm.AS_RECORDED: [("A", TAINTED)],
        Arm.CLEAN_PRODUCER: [("A", CLEAN)],
        Arm.WITHOUT_INPUT: [],
    }


def test_the_exported_ledger_proves_the_replays_offline(
    world: ReplayWorld, wrecked: tuple[Replayed, Digest], tmp_path: Path
) -> None:
    key = signer_of(world.store).key
    bundle = export_ledger(world.store, world.ledger, tmp_path / "ledger.tar", key)
    proven = verify_ledger_bytes(bundle.path.read_bytes(), key.public)
    assert {*world.replays()} <= proven.chains.keys()
    assert proven.receipts[wrecked[1]].predicate["cause"] == "EXTERNAL_SUPPORTED"


def test_one_seed_draws_the_same_data_in_every_arm_and_another_one_others(
    world: ReplayWorld, wrecked: tuple[Replayed, Digest]
) -> None:
    made, _ = wrecked
    losses = {
        (arm, each.seed): measured(world, each.output, "loss")
        for arm, all_of in made.replays.items()
        for each in all_of
    }
    seeds = sorted({seed for _, seed in losses})
    before = {(arm, seed): loss[: MERGED_AT - 1] for (arm, seed), loss in losses.items()}
    assert all(before[arm, seed] == before[Arm.AS_RECORDED, seed] for arm, seed in before)
    assert len({tuple(before[Arm.AS_RECORDED, seed][CLEAN:]) for seed in seeds}) == len(seeds)
    assert len({tuple(loss[:CLEAN]) for loss in losses.values()}) == 1  # what W itself measured before
    assert len({tuple(losses[arm, seeds[0]][:MERGED_AT]) for arm in made.replays}) == len(made.replays)


def test_a_replay_is_a_job_of_its_own_whose_chain_says_what_it_read(
    world: ReplayWorld, wrecked: tuple[Replayed, Digest]
) -> None:
    made, _ = wrecked
    for arm, replays in made.replays.items():
        for each in replays:
            world.ledger.verify(each.job_id)
            [opened] = world.events(each.job_id, Kind.JOB_OPENED)
            said = opened.payload["replay_of"]
            assert (said["job_id"], said["arm"], said["seed"]) == ("W", arm, each.seed)
            [closed] = world.events(each.job_id, Kind.JOB_CLOSED)
            assert (closed.payload["reason"], closed.payload["output"]) == ("completed", None)
            read = [e.payload for e in world.events(each.job_id, Kind.CHECKPOINT_CONSUMED)]
            merged = {Arm.AS_RECORDED: [("A", TAINTED)], Arm.CLEAN_PRODUCER: [("A", CLEAN)], Arm.WITHOUT_INPUT: []}
            places = [(payload["producer"], payload["producer_step"]) for payload in read]
            assert places == [("W", 10), *merged[arm]]


def test_what_is_under_quarantine_is_read_by_an_exception_that_names_each_mark(
    world: ReplayWorld, wrecked: tuple[Replayed, Digest]
) -> None:
    made, _ = wrecked
    tree = made.case.suspects[0].source.tree
    marks = [mark.receipt for mark in world.store.quarantine.marks(tree) if mark.lifted is None]
    assert marks
    for arm, replays in made.replays.items():
        for each in replays:
            despite = [e.payload.get("despite") for e in world.events(each.job_id, Kind.CHECKPOINT_CONSUMED)]
            assert [named for named in despite if named] == ([marks] if arm is Arm.AS_RECORDED else [])


def test_nothing_that_a_replay_trains_can_be_used(world: ReplayWorld, wrecked: tuple[Replayed, Digest]) -> None:
    made, _ = wrecked
    for replays in made.replays.values():
        for each in replays:
            assert world.ledger.checkpoints(each.job_id) == []
            files = {entry.path for entry in world.store.trees.entries(each.output)}
            assert files == {"metrics.jsonl", "evaluations.jsonl", "replay.json"}
            assert world.store.pointers.ending_at(each.output) == []


def test_the_receipt_is_signed_and_the_replayed_jobs_chain_names_it(
    world: ReplayWorld, wrecked: tuple[Replayed, Digest]
) -> None:
    made, receipt = wrecked
    world.ledger.verify("W")
    event = world.events("W", Kind.ISOLATION_ACTION)[-1]
    said = {name: event.payload[name] for name in ("receipt", "action", "cause", "incident")}
    assert said == {
        "receipt": receipt,
        "action": "attribution",
        "cause": "EXTERNAL_SUPPORTED",
        "incident": made.case.incident.name,
    }
    statement = verify(world.store.blobs.read_bytes(receipt), signer_of(world.store).key.public)
    assert statement.predicate_type == ATTRIBUTION
    assert statement.predicate == json.loads(json.dumps(made.to_json()))
    outputs = {subject.name: subject.digest for subject in statement.subjects}
    assert outputs.pop("divergence") == made.case.incident.divergence
    assert outputs == {each.job_id: each.output for replays in made.replays.values() for each in replays}


def test_the_published_schema_describes_the_receipt(wrecked: tuple[Replayed, Digest]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((FORMATS / "attribution_receipt.schema.json").read_text("utf-8"))
    described = jsonschema.Draft202012Validator(schema)
    predicate = json.loads(json.dumps(wrecked[0].to_json()))
    described.validate(predicate)
    assert not described.is_valid({**predicate, "cause": "GUILTY"})
    assert not described.is_valid({**predicate, "more": 1})


def test_the_incidents_exposure_is_upgraded_with_k_of_n(world: ReplayWorld, wrecked: tuple[Replayed, Digest]) -> None:
    incident = wrecked[0].case.incident
    reported = {job["job_id"]: job["exposure"] for job in jobs_of(incident)}
    shown = {job["job_id"]: job for job in upgraded(world.ledger, incident, jobs_of(incident))}
    assert (reported["W"], shown["W"]["exposure"]) == ("EXPOSED_UNTESTED", "EXTERNAL_SUPPORTED")
    assert shown["W"]["replays"]["as_recorded"] == {"diverged": 3, "runs": 3}
    others = {job_id: job["exposure"] for job_id, job in shown.items() if job_id != "W"}
    assert others == {job_id: exposure for job_id, exposure in reported.items() if job_id != "W"}


def test_replaying_again_trains_nothing_and_writes_nothing(
    world: ReplayWorld, wrecked: tuple[Replayed, Digest]
) -> None:
    heads, heard = world.ledger.jobs(), len(world.heard)
    assert world.replayer().replay("W", "another run") == wrecked
    assert (world.ledger.jobs(), len(world.heard)) == (heads, heard)


def test_replays_are_neither_scanned_nor_traced(world: ReplayWorld, wrecked: tuple[Replayed, Digest]) -> None:
    assert world.replays()
    seen = watch(world.store, world.ledger)
    assert not {verdict.job_id for verdict in seen.scan.verdicts} & {*world.replays()}
    assert not {job.job_id for job in fleet_of(world.store, world.ledger).jobs} & {*world.replays()}


def test_replaying_that_is_cut_short_goes_on_with_what_is_left(world: ReplayWorld) -> None:
    before = {*world.replays()}

    def cut(message: Message) -> None:
        if "metric" in message and len({*world.replays()} - before) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.replayer(cut).replay("C", "run", seeds=1)
    arms = {world.ledger.job(job_id).opened["replay_of"]["arm"]: job_id for job_id in {*world.replays()} - before}
    first, second = arms[Arm.AS_RECORDED], arms[Arm.CLEAN_PRODUCER]
    reasons = [world.events(job_id, Kind.JOB_CLOSED)[-1].payload["reason"] for job_id in (first, second)]
    assert reasons == ["completed", "interrupted"]
    made, _ = world.replayer().replay("C", "run", seeds=1)
    attempts = {each.job_id: world.ledger.job(each.job_id).attempt for [each] in made.replays.values()}
    assert attempts.pop(first) == 1
    assert attempts.pop(second) == 2
    assert set(attempts.values()) == {1}


def test_fewer_than_three_seeds_are_reported_and_decide_nothing(world: ReplayWorld) -> None:
    made, _ = world.replayer().replay("W", "run", seeds=1)
    assert counts(made)["as_recorded"] == (1, 1)
    assert made.attribution.cause is Cause.EXPOSED_UNTESTED


def test_what_cannot_be_replayed_is_refused_with_the_reason(world: ReplayWorld) -> None:
    replayer = world.replayer()
    with pytest.raises(UnknownNameError):
        replayer.replay("nobody", "run")
    with pytest.raises(InputError, match="no isolated incident exposes job A"):
        replayer.replay("A", "run")
    with pytest.raises(InputError, match="at least 1"):
        replayer.replay("W", "run", seeds=0)


def test_a_job_that_is_trained_now_is_not_replayed(world: ReplayWorld) -> None:
    writer = world.ledger.take("W", "a living trainer", 60.0)
    try:
        with pytest.raises(LeaseLostError, match="replay it after its end"):
            world.replayer().replay("W", "run")
    finally:
        writer.release()


def jobs_of(incident: Incident) -> list[dict[str, Any]]:
    assert incident.report is not None
    return list(incident.report["jobs"])


def measured(world: ReplayWorld, output: Digest, name: str) -> list[Any]:
    lines = world.store.trees.read(output, "metrics.jsonl").decode().splitlines()
    return [json.loads(line)[name] for line in lines]
