"""A divergence among six jobs that train at once, found and isolated by function calls: no orchestrator is needed.

Here c is short: it has ended well, with its taint, before the divergence is confirmed.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest

from ftpipeline.cycle.incident import Incident
from ftpipeline.cycle.isolation import Isolator
from ftpipeline.cycle.watch import signer_of, watch
from ftpipeline.errors import LeaseLostError, QuarantinedError
from ftpipeline.guard.plan import Action
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.store.home import Home
from ftpipeline_tests.cycle.fleet_world import EndsRuns
from ftpipeline_tests.cycle.training_world import workers
from ftpipeline_tests.orchestration.servers import needs_proc, wait_for
from ftpipeline_tests.scenarios.fleet import (
    EARLY,
    LATE,
    MERGED_AT,
    NAMES,
    Fleet,
    build_fleet,
    found_of,
    has_consumed,
    has_saved,
    held,
    job_of,
    tree_of,
)

pytestmark = [pytest.mark.slow, needs_proc, pytest.mark.timeout(600)]

_PATIENCE, _SOON = 240.0, 0.02


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Six jobs that have consumed what they were to consume; a goes on, and its loss with it."""
    folder = tmp_path_factory.mktemp("fleet")
    build_fleet(folder / "pipelines", c={"max_steps": 80})
    with closing(Home(folder / "home").open()) as store:
        fleet = Fleet(folder / "pipelines", store)
        start(fleet)
        yield fleet


def start(fleet: Fleet) -> None:
    """Start all six, a first, and return once c has ended and each of the others has consumed."""
    store = fleet.store
    fleet.start("a")
    wait_for(lambda: has_saved(store, "a", EARLY) or None, _PATIENCE, f"checkpoint {EARLY} of a", _SOON)
    [worker] = workers()
    with held(worker):
        for name in "bdef":
            fleet.start(name)
        wait_for(lambda: job_of(store, "b"), _PATIENCE, "job of b")
        fleet.start("c")
        wait_for(lambda: job_of(store, "c") and job_of(store, "f"), _PATIENCE, "jobs of c and f")
    wait_for(lambda: has_saved(store, "a", LATE) or None, _PATIENCE, f"checkpoint {LATE} of a", _SOON)
    with held(worker):
        wait_for(lambda: all(has_consumed(store, name) for name in "bef") or None, _PATIENCE, "consumptions")
        fleet.wait("c", "d", "e")


@pytest.fixture(scope="module")
def incident(fleet: Fleet) -> Incident:
    """The divergence of a, isolated as an orchestrator is down: nobody ends the runs, and they may write no more."""
    store = fleet.store
    [found] = wait_for(lambda: watch(store, ledger_of(store)).waiting or None, _PATIENCE, "confirmation")
    done = Isolator(store, ledger_of(store), signer_of(store), EndsRuns()).isolate(found.name)
    fleet.wait(*NAMES)
    return done


def test_what_consumed_the_divergence_is_tainted_and_nothing_else(fleet: Fleet, incident: Incident) -> None:
    jobs = found_of(fleet.store, incident)
    assert {name: job.action for name, job in jobs.items()} == (
        dict.fromkeys("abc", Action.ROLLBACK) | dict.fromkeys("de", Action.NONE) | {"f": Action.QUARANTINE}
    )
    assert [name for name, job in jobs.items() if job.unrecoverable] == ["f"]
    assert [job.tainted_from for name, job in jobs.items() if name in "bc"] == [(1, MERGED_AT)] * 2
    assert [job.witness for name, job in jobs.items() if name in "bcf"] == [["a", "b"], ["a", "b", "c"], ["a", "f"]]


def test_tainted_trainings_stop_and_clean_ones_end_well(fleet: Fleet, incident: Incident) -> None:
    assert {name for name, error in fleet.ended.items() if error is None} == set("cde")
    assert {type(error) for error in fleet.ended.values() if error is not None} == {LeaseLostError}
    assert ledger_of(fleet.store).jobs(open_only=True) == []


def test_every_chain_still_verifies(fleet: Fleet, incident: Incident) -> None:
    ledger = ledger_of(fleet.store)
    assert [ledger.verify(head.job_id).seq for head in ledger.jobs()] == [head.seq for head in ledger.jobs()]


def test_what_was_trained_with_taint_is_neither_exported_nor_reused(fleet: Fleet, incident: Incident) -> None:
    with pytest.raises(QuarantinedError):
        fleet.finish("c")
    fleet.start("c")
    fleet.wait("c")
    assert "is quarantined" in str(fleet.ended["c"])


def test_a_retry_goes_on_from_the_last_clean_checkpoint_and_may_not_merge_again(
    fleet: Fleet, incident: Incident
) -> None:
    fleet.start("b")
    fleet.wait("b")
    assert "is quarantined" in str(fleet.ended["b"])
    head = job_of(fleet.store, "b")
    assert head is not None
    assert (head.attempt, head.opened["resumed_from"]["step"]) == (2, EARLY)
    assert head.opened["resumed_from"]["tree"] == tree_of(fleet.store, head.job_id, EARLY)
