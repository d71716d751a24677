"""Decision boundary 2: nobody trains beside others whose record cannot be trusted."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from ftpipeline.cycle.concurrency import Company, require_safe_company
from ftpipeline.cycle.detector_states import DetectorStates
from ftpipeline.cycle.incident import Incidents
from ftpipeline.cycle.isolation import Isolator
from ftpipeline.cycle.watch import is_stale, signer_of, watch
from ftpipeline.errors import JobHaltedError
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.fleet_world import EndsRuns, World, six_jobs


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def world(store: Store) -> World:
    return World(store)


def break_chain(world: World, job_id: str) -> None:
    """Change an early event past the triggers, as somebody with the database file could."""
    with world.store.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER IF EXISTS ledger_events_no_update")
        connection.exec_driver_sql("UPDATE ledger_events SET step = step + 1 WHERE job_id = ? AND seq = 1", (job_id,))


@contextmanager
def without_ledger(world: World) -> Iterator[None]:
    with world.store.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE ledger_jobs RENAME TO hidden")
    yield
    with world.store.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE hidden RENAME TO ledger_jobs")


def start(world: World, job_id: str) -> None:
    require_safe_company(world.store, world.ledger, job_id)


def test_who_trains_alone_needs_no_scan(world: World) -> None:
    start(world, "A")
    assert DetectorStates(world.store.database).last_finished() is None


def test_a_broken_chain_halts_who_trains_and_refuses_who_starts(world: World) -> None:
    clock = Clock()
    for name in ("A", "B"):
        world.open(name).train(60)
    company = Company(world.ledger, "B", clock)
    company.check()
    start(world, "C")
    break_chain(world, "A")
    clock.now += 10
    with pytest.raises(JobHaltedError, match="job B may not train beside others: ledger of job A, event 1,"):
        company.check()
    with pytest.raises(JobHaltedError, match="job C may not train beside others"):
        start(world, "C")


def test_a_broken_chain_of_a_job_that_has_ended_halts_nobody(world: World) -> None:
    world.open("A").close()
    world.open("B").train(60)
    break_chain(world, "A")
    start(world, "C")
    Company(world.ledger, "B").check()


def test_a_ledger_that_is_missing_halts_everybody(world: World) -> None:
    world.open("A").train(60)
    clock = Clock()
    company = Company(world.ledger, "A", clock)
    with without_ledger(world):
        with pytest.raises(JobHaltedError, match="may not train"):
            start(world, "B")
        with pytest.raises(JobHaltedError, match="may not train"):
            company.check()
    start(world, "B")


def test_between_two_looks_a_check_costs_nothing(world: World) -> None:
    world.open("A").train(60)
    world.open("B").train(60)
    clock = Clock()
    company = Company(world.ledger, "A", clock)
    company.check()
    clock.now += 0.5
    with without_ledger(world):
        company.check()
        clock.now += 0.6
        with pytest.raises(JobHaltedError):
            company.check()


def test_who_starts_beside_others_after_the_scans_have_stopped_scans_first(world: World) -> None:
    six_jobs(world.store)
    start(world, "G")
    assert [incident.job_id for incident in Incidents(world.store.database).waiting()] == ["A"]
    assert not is_stale(world.store, timedelta(minutes=1))


def test_a_scan_that_is_recent_enough_is_not_repeated(world: World) -> None:
    six_jobs(world.store)
    DetectorStates(world.store.database).finished(datetime.now(UTC) - timedelta(seconds=60))
    start(world, "G")
    assert Incidents(world.store.database).waiting() == []
    DetectorStates(world.store.database).finished(datetime.now(UTC) - timedelta(seconds=600))
    start(world, "G")
    assert Incidents(world.store.database).waiting() != []


def test_a_scan_from_the_future_is_none(world: World) -> None:
    DetectorStates(world.store.database).finished(datetime.now(UTC) + timedelta(hours=1))
    assert is_stale(world.store, timedelta(days=1))


def test_a_diverged_job_starts_again_only_when_its_incident_is_isolated(world: World) -> None:
    fleet = six_jobs(world.store)
    [incident] = watch(world.store, fleet.ledger).opened
    with pytest.raises(JobHaltedError, match=f"incident {incident.name} is not isolated yet"):
        start(fleet, "A")
    Isolator(world.store, fleet.ledger, signer_of(world.store), EndsRuns()).isolate(incident.name)
    start(fleet, "A")
