"""A real daemon and the weekly schedule."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ftpipeline.weeks import Calendar, iso_name
from ftpipeline_tests.orchestration.servers import Deployment, deployment, needs_proc, wait_for
from ftpipeline_tests.tiny_pipeline import write_pipeline

pytestmark = [pytest.mark.slow, needs_proc, pytest.mark.timeout(420)]


@pytest.fixture
def every_minute(tmp_path: Path, dagster_home: Path) -> Deployment:
    """A pipeline that is due every minute; it has no database, so that a run ends as soon as it has begun."""
    week = {"timezone": "UTC", "starts": "monday", "first": "2024-01-01"}
    return deployment(tmp_path, write_pipeline(tmp_path / "pipeline.yaml", week=week, schedule={"cron": "* * * * *"}))


def test_one_run_is_started_for_the_week_that_just_ended_and_none_at_the_next_tick(every_minute: Deployment) -> None:
    every_minute.call("dagster", "schedule", "start", "tiny_weekly", "-w", "workspace.yaml")
    with every_minute.running("dagster-daemon", "run", "-w", "workspace.yaml"), dg.DagsterInstance.get() as instance:
        first, second = wait_for(lambda: ended_ticks(instance), 180, "two ticks")
        (run,) = wait_for(lambda: finished_runs(instance), 120, "end of the run")
    asked = datetime.fromtimestamp(first.timestamp, UTC)
    week = Calendar("UTC").last_completed(asked)
    assert week + timedelta(days=7) <= asked.date() < week + timedelta(days=14)
    assert run.tags["dagster/partition"] == week.isoformat()
    assert run.tags["ftpipeline/week"] == iso_name(week)
    assert (first.status.value, list(first.run_ids)) == ("SUCCESS", [run.run_id])
    assert (second.status.value, list(second.run_ids)) == ("SKIPPED", [])


def ended_ticks(instance: dg.DagsterInstance) -> list[Any] | None:
    """Return the first two ticks of the schedule, in order, once both have ended; nothing before."""
    (state,) = (each for each in instance.all_instigator_state() if each.name == "tiny_weekly")
    ticks = sorted(instance.get_ticks(state.instigator_origin_id, state.selector_id), key=lambda tick: tick.timestamp)
    ended = [tick for tick in ticks if tick.status.value != "STARTED"]
    return ended[:2] if len(ended) >= 2 else None


def finished_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun] | None:
    """Return all runs once each has ended; nothing before."""
    runs = list(instance.get_runs())
    return runs if all(run.is_finished for run in runs) else None
