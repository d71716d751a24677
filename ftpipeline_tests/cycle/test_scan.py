"""Scans of a ledger: incremental, bounded, and never stopped by what cannot be read."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftpipeline.cycle.detector_states import DetectorStates
from ftpipeline.cycle.scan import Limits, Scan, scan
from ftpipeline.cycle.training_points import Memory, look
from ftpipeline.digest import of_bytes
from ftpipeline.guard.config import Envelope
from ftpipeline.guard.points import EventKind
from ftpipeline.guard.verdicts import EvidenceKind, Stage
from ftpipeline.ledger.events import CloseReason, Event, Kind
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.fleet_world import World, opened, point, six_jobs

FAMILY = of_bytes(b"family")


@pytest.fixture
def world(store: Store) -> World:
    return World(store)


def scanned(world: World, limits: Limits | None = None) -> Scan:
    states = DetectorStates(world.store.database)
    return scan(world.ledger, states) if limits is None else scan(world.ledger, states, limits)


def stages(found: Scan) -> dict[str, Stage]:
    return {verdict.job_id: verdict.detection.stage for verdict in found.verdicts}


def event(seq: int, kind: Kind, payload: dict[str, Any], attempt: int = 1, step: int = 0) -> Event:
    return Event("A", attempt, seq, None, step, 0.0, "2026-11-02T12:00:00+00:00", kind, payload)


def metrics(seq: int, *points: Any, attempt: int = 1) -> Event:
    return event(seq, Kind.METRICS, {"points": list(points)}, attempt)


def test_a_scan_looks_at_each_event_once(world: World) -> None:
    job = world.open("A")
    job.train(130)
    assert stages(scanned(world)) == {"A": Stage.HEALTHY}
    assert scanned(world).verdicts == ()
    job.train(131, float("nan"))
    [verdict] = scanned(world).verdicts
    assert [found.onset_step for found in verdict.confirmed] == [131]
    assert scanned(world).verdicts == ()


def test_a_closed_job_that_nobody_looked_at_yet_is_looked_at(world: World) -> None:
    job = world.open("A")
    job.train(3, float("inf"))
    job.writer.close(CloseReason.FAILED, error="the loss is infinite")
    assert stages(scanned(world)) == {"A": Stage.CONFIRMED}


def test_a_short_job_is_not_called_healthy_and_its_nan_is_still_seen(world: World) -> None:
    world.open("short").train(5)
    world.open("torn").train(5, float("nan"))
    assert stages(scanned(world)) == {"short": Stage.INSUFFICIENT, "torn": Stage.CONFIRMED}


def test_a_diverged_attempt_is_told_of_though_another_one_followed(world: World) -> None:
    job = world.open("A")
    job.train(60)
    tree = job.save()
    job.train(70, float("nan"))
    job.writer.close(CloseReason.FAILED)
    world.open("A", {"attempt": 1, "step": 60, "tree": tree}).train(100)
    [verdict] = scanned(world).verdicts
    assert verdict.detection.attempt == 2
    assert [(found.attempt, found.onset_step) for found in verdict.confirmed] == [(1, 61)]


def test_the_work_of_a_scan_is_bounded_and_the_next_goes_on(world: World) -> None:
    for name in ("A", "B", "C"):
        world.open(name).train(200)
    first = scanned(world, Limits(jobs=2, events=100, job_events=100))
    assert set(stages(first)) == {"A", "B"}
    assert (first.waiting, first.is_complete) == (1, False)
    assert DetectorStates(world.store.database).last_finished() is None
    assert set(stages(scanned(world))) == {"C"}
    assert DetectorStates(world.store.database).last_finished() is not None


def test_a_long_history_does_not_keep_the_others_waiting(world: World) -> None:
    long, other = world.open("A"), world.open("B")
    long.train(1000)
    other.train(3, float("nan"))
    limits = Limits(jobs=10, events=10, job_events=3)
    found = scanned(world, limits)
    assert stages(found)["B"] is Stage.CONFIRMED
    assert {verdict.job_id: verdict.waiting for verdict in found.verdicts} == {"A": 18, "B": 0}
    while not (found := scanned(world, limits)).is_complete:
        assert len(found.verdicts) == 1
    assert stages(found) == {"A": Stage.HEALTHY}


@settings(max_examples=25)
@given(cuts=st.sets(st.integers(1, 30), max_size=6), seed=st.integers(0, 5))
def test_however_events_are_cut_the_memory_is_the_same(cuts: set[int], seed: int) -> None:
    events = [event(0, Kind.JOB_OPENED, opened("A"))]
    for seq in range(1, 31):
        attempt = 1 if seq < 20 else 2
        loss = float("nan") if seed == 1 and seq == 12 else None
        points = [point(5 * seq + step, loss, accumulation=1 + (seq > 8 + seed)) for step in range(5)]
        events.append(metrics(seq, *points, attempt=attempt))
    whole, _ = look(Memory(), events)
    parts = Memory()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(events)], strict=True):
        parts, _ = look(parts, events[start:end])
        parts = Memory.from_json(json.loads(json.dumps(parts.to_json(), allow_nan=False)))
    assert parts == whole


@pytest.mark.parametrize(
    "row",
    [
        "half",
        {"epoch": 1.0, "loss": 1.0},
        {"step": 131, "epoch": 1.0},
        {"step": -1, "loss": 1.0},
        {"step": 131, "loss": "a lot"},
        {"step": 131, "loss": {"non_finite": "perhaps"}},
    ],
)
def test_a_malformed_point_is_counted_and_speaks_for_nobody(row: Any) -> None:
    healthy = [point(step) for step in range(1, 131)]
    memory, _ = look(Memory(), [metrics(1, *healthy, row)])
    assert (memory.unusable, memory.verdict().stage) == (1, Stage.INSUFFICIENT)
    assert memory.reasons[0].startswith("event 1: ")
    memory, _ = look(memory, [metrics(2, point(132, float("nan")))])
    assert memory.verdict().stage is Stage.CONFIRMED


@pytest.mark.parametrize(
    ("payload", "fields"),
    [
        ('{"points":[{"step":1}]}', {"schema": "ftpipeline.ledger_event/2"}),
        ('{"anything":1}', {"schema": "ftpipeline.ledger_event/2", "kind": "checkpoint_sealed"}),
        ("half of a li", {}),
        ('{"points":null}', {}),
    ],
)
def test_an_event_that_cannot_be_read_is_counted_and_hides_nothing(
    world: World, payload: str, fields: dict[str, str]
) -> None:
    a, b = world.open("A"), world.open("B")
    a.train(130)
    a.slip_in(world.ledger, payload, **fields)
    b.train(130)
    found = scanned(world)
    assert stages(found) == {"A": Stage.INSUFFICIENT, "B": Stage.HEALTHY}
    assert {verdict.job_id: verdict.unusable for verdict in found.verdicts} == {"A": 1, "B": 0}
    assert found.is_complete
    a.slip_in(world.ledger, payload, **fields)
    a.train(140, float("nan"))
    assert stages(scanned(world)) == {"A": Stage.CONFIRMED}


def test_what_could_not_be_read_of_one_attempt_is_not_held_against_the_next() -> None:
    healthy = [metrics(seq, *(point(seq * 10 + step) for step in range(10)), attempt=2) for seq in range(2, 16)]
    memory, _ = look(Memory(), [metrics(1, "torn"), *healthy])
    assert memory.unusable == 0
    assert memory.verdict().stage is Stage.HEALTHY


def test_an_accumulation_that_changes_is_a_declared_change() -> None:
    points = [point(step, accumulation=1 if step <= 120 else 4) for step in range(1, 160)]
    memory, _ = look(Memory(), [metrics(1, *points)])
    assert [(change.kind, change.step) for change in memory.changes] == [(EventKind.ACCUMULATION_CHANGE, 121)]


def test_changes_that_a_job_declares_when_it_opens_are_understood(world: World) -> None:
    changes = [{"step": 121, "event": "mixture_switch"}]
    job = world.open("A", changes=changes)
    job.train(120)
    job.train(200, loss=3.0)
    assert stages(scanned(world))["A"] is not Stage.CONFIRMED


def test_evaluations_speak_too() -> None:
    training = metrics(1, *(point(step) for step in range(1, 131)))
    worse = [
        event(1 + n, Kind.EVALUATION, {"val_loss": 1.0, "kl": 0.1, "scores": {"f1": score}}, step=20 * n)
        for n, score in enumerate([0.9, 0.9, 0.5, 0.5, 0.5], start=1)
    ]
    memory, _ = look(Memory(), [training, *worse])
    assert EvidenceKind.EVALUATION_REGRESSION in {item.kind for item in memory.verdict().evidence}


def test_a_job_is_judged_by_the_envelope_of_its_family_that_stood_when_it_began(world: World) -> None:
    states = DetectorStates(world.store.database)
    envelope = Envelope((0, 1000), (0.05, 0.05))
    states.put_envelope(FAMILY, envelope)
    job = world.open("A", family=FAMILY)
    world.open("B").train(130)
    job.train(130)
    scanned(world)
    states.put_envelope(FAMILY, Envelope((0, 1000), (9.0, 9.0)))
    for step in (131, 132, 133, 134):
        job.append(Kind.EVALUATION, step, {"kl": 0.5})
    [verdict] = scanned(world).verdicts
    assert verdict.detection.stage is Stage.CONFIRMED
    assert {item.kind for item in verdict.detection.evidence} == {EvidenceKind.KL_ENVELOPE}


@pytest.mark.parametrize("other", [("detector_state/1", "other/9"), ('"accumulation"', '"batches"')])
def test_a_state_of_another_version_is_looked_at_from_the_start(world: World, other: tuple[str, str]) -> None:
    job = world.open("A")
    job.train(130)
    scanned(world)
    with world.store.database.write() as connection:
        connection.exec_driver_sql("UPDATE detector_states SET state = replace(state, ?, ?)", other)
    job.train(140)
    assert stages(scanned(world)) == {"A": Stage.HEALTHY}


def test_a_scan_that_is_behind_never_takes_another_ones_place(world: World) -> None:
    job = world.open("A")
    job.train(130)
    scanned(world)
    states = DetectorStates(world.store.database)
    behind = states.of("A")
    assert behind is not None
    job.train(180)
    scanned(world)
    states.put([behind])
    ahead = states.of("A")
    assert ahead is not None
    assert ahead.seq > behind.seq


def test_whoever_dies_before_remembering_is_told_again(world: World) -> None:
    six_jobs(world.store)
    states = DetectorStates(world.store.database)

    def dies(verdicts: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(world.ledger, states, report=dies)
    assert stages(scanned(world))["A"] is Stage.CONFIRMED
