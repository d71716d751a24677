"""A training that was cut short under Dagster goes on from its checkpoint, as the next attempt of its job."""

import os
import signal
import threading
from pathlib import Path

import pytest

from ftpipeline.ledger.events import Kind
from ftpipeline.ledger.ledger import Ledger, ledger_of
from ftpipeline_tests.cycle.training_world import workers
from ftpipeline_tests.orchestration.location import DATA_STAGES, LEARNING, Location, tiny_location
from ftpipeline_tests.orchestration.servers import needs_proc, wait_for

pytestmark = [pytest.mark.slow, needs_proc, pytest.mark.timeout(420)]


def opened(ledger: Ledger) -> list[tuple[int, int]]:
    """The attempts of the one job, each with the step it went on from."""
    (job,) = ledger.jobs()
    events = ledger.events(job.job_id, kinds=[Kind.JOB_OPENED])
    return [(event.attempt, (event.payload["resumed_from"] or {"step": 0})["step"]) for event in events]


def kill_the_worker_after_its_first_checkpoint(location: Location) -> None:
    def has_saved() -> bool | None:
        ledger = ledger_of(location.store)
        return any(ledger.checkpoints(job.job_id) for job in ledger.jobs()) or None

    wait_for(has_saved, 240, "the first checkpoint")
    for pid in workers():
        os.kill(pid, signal.SIGKILL)


def test_dagster_retries_a_killed_training_and_it_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    train = {**LEARNING, "max_steps": 600}
    with tiny_location(tmp_path, train=train, checkpoints={"steps": 20}) as location:
        assert location.run(*DATA_STAGES).success
        killer = threading.Thread(target=kill_the_worker_after_its_first_checkpoint, args=(location,))
        killer.start()
        result = location.run("train")
        killer.join()
        assert result.success
        ((first, began), (second, resumed)) = opened(ledger_of(location.store))
        assert (first, began, second) == (1, 0, 2)
        assert resumed >= 20
        again = location.run("train")
        assert location.digest(again, "train") == location.digest(result, "train")
        assert len(opened(ledger_of(location.store))) == 2  # a reused result is no attempt
