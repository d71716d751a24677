"""The record of a job that trains is falsified: who trains beside it halts, and nobody starts."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ftpipeline.errors import JobHaltedError
from ftpipeline.ledger.events import CloseReason, Kind
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.store.home import Home
from ftpipeline_tests.cycle.training_world import workers
from ftpipeline_tests.ledger.tamper import without_triggers
from ftpipeline_tests.orchestration.servers import needs_proc, wait_for
from ftpipeline_tests.scenarios.fleet import EARLY, Fleet, build_fleet, has_saved, held, job_of

pytestmark = [pytest.mark.slow, needs_proc, pytest.mark.timeout(300)]

_PATIENCE = 120.0


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """a and d train, a at a standstill, so that it stays open; nobody reads of them yet."""
    build_fleet(tmp_path / "pipelines", d={"max_steps": 100_000})
    with closing(Home(tmp_path / "home").open()) as store:
        fleet = Fleet(tmp_path / "pipelines", store)
        fleet.start("a")
        wait_for(lambda: has_saved(store, "a", EARLY) or None, _PATIENCE, "training of a")
        [worker] = workers()
        with held(worker):
            fleet.start("d")
            wait_for(lambda: has_saved(store, "d", EARLY) or None, _PATIENCE, "training of d")
            fleet.prepare("b")
            yield fleet
            os.kill(worker, signal.SIGKILL)
        fleet.wait("a")


def test_who_trains_beside_a_broken_chain_halts_and_who_would_start_is_refused(fleet: Fleet) -> None:
    falsify(fleet, "a")
    fleet.wait("d")
    assert isinstance(fleet.ended["d"], JobHaltedError)
    assert "may not train beside others" in str(fleet.ended["d"])
    last = ledger_of(fleet.store).events(job_id(fleet, "d"))[-1]
    assert (last.kind, last.payload["reason"]) == (Kind.JOB_CLOSED, CloseReason.HALTED)
    fleet.start("b")
    fleet.wait("b")
    assert isinstance(fleet.ended["b"], JobHaltedError)
    assert job_of(fleet.store, "b") is None


def falsify(fleet: Fleet, name: str) -> None:
    """Change an early event past the triggers, as somebody with the database file could."""
    with without_triggers(fleet.store.database) as connection:
        change = "UPDATE ledger_events SET step = step + 1 WHERE job_id = ? AND seq = 1"
        connection.exec_driver_sql(change, (job_id(fleet, name),))


def job_id(fleet: Fleet, name: str) -> str:
    head = job_of(fleet.store, name)
    assert head is not None
    return head.job_id
