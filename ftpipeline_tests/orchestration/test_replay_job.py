"""The job that replays, in an instance of its own; what it replays was trained before, and is reused."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline.orchestration.divergence import guard_definitions
from ftpipeline.orchestration.quarantine import QUARANTINE
from ftpipeline.orchestration.replay import REPLAY_JOB, run_config
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.store.home import Home
from ftpipeline_tests.cycle.replay_world import ReplayWorld, merge


@pytest.fixture
def workbench(home: Home) -> Iterator[Workbench]:
    workbench = Workbench(home)
    yield workbench
    workbench.store.close()


@pytest.fixture
def world(workbench: Workbench, tmp_path: Path) -> ReplayWorld:
    """W merged what A had wrecked, and A is isolated."""
    (tmp_path / "work").mkdir()
    made = ReplayWorld(workbench.store, tmp_path / "work")
    made.train("A", max_steps=10)
    made.save("A", 15, 300.0)
    made.train("W", consumes=[merge("A", 15, 12)])
    made.isolate("A", 10)
    return made


def execute(workbench: Workbench, job_id: str) -> dg.ExecuteInProcessResult:
    job = guard_definitions(workbench).resolve_job_def(REPLAY_JOB)
    with dg.DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(run_config=run_config(job_id, 1), instance=instance, raise_on_error=False)


def test_a_run_reuses_what_was_replayed_and_shows_the_cause_on_the_jobs_partition(
    workbench: Workbench, world: ReplayWorld
) -> None:
    made, _ = world.replayer().replay("W", "run", seeds=1)
    heads = world.ledger.jobs()
    result = execute(workbench, "W")
    assert result.success
    assert world.ledger.jobs() == heads
    [shown] = [event.materialization for event in result.get_asset_materialization_events()]
    assert (shown.asset_key, shown.partition) == (QUARANTINE, f"{made.case.incident.name}.W")
    assert shown.metadata["exposure"].value == "EXPOSED_UNTESTED"  # one seed decides nothing
    replays = shown.metadata["replays"]
    assert isinstance(replays, dg.TableMetadataValue)
    assert [record.data["diverged"] for record in replays.records] == ["1", "0", "0"]


def test_a_job_that_nothing_exposed_fails_the_run_with_the_reason(workbench: Workbench, world: ReplayWorld) -> None:
    result = execute(workbench, "A")
    assert not result.success
    [failed] = [event for event in result.all_events if event.is_step_failure]
    assert "no isolated incident exposes job A" in str(failed.step_failure_data.user_failure_data)
    assert world.replays() == []
