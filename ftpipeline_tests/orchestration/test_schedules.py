"""The schedule's function, called with given times: it depends on nothing else."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftpipeline import pipeline as pipelines
from ftpipeline.orchestration.assets import weekly_partitions
from ftpipeline.orchestration.schedules import weekly_schedule
from ftpipeline.pipeline import Pipeline
from ftpipeline.weeks import DAYS, iso_name
from ftpipeline_tests.tiny_pipeline import write_pipeline

BERLIN = ZoneInfo("Europe/Berlin")
FIRST = date(2025, 1, 6)  # a Monday


def berlin_pipeline(folder: Path, starts: str = "monday", **schedule: Any) -> Pipeline:
    first = FIRST + timedelta(days=DAYS.index(starts))
    week = {"timezone": "Europe/Berlin", "starts": starts, "first": first.isoformat()}
    return pipelines.load(write_pipeline(folder / "pipeline.yaml", week=week, schedule=schedule))


@pytest.fixture(scope="module")
def berlin(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """A pipeline whose weeks start on Monday in Berlin."""
    return berlin_pipeline(tmp_path_factory.mktemp("berlin"))


@pytest.fixture(scope="module")
def without_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """An instance that stays without runs."""
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("instance"))) as instance:
        yield instance


def tick(pipeline: Pipeline, moment: datetime, instance: dg.DagsterInstance) -> Any:
    """Return what the schedule answers to a tick at an aware moment."""
    context = dg.build_schedule_context(instance=instance, scheduled_execution_time=moment)
    return weekly_schedule(pipeline, "job")(context)


def asked_for(pipeline: Pipeline, moment: datetime, instance: dg.DagsterInstance) -> tuple[str, str]:
    """Return partition key and week tag of the run that a tick asks for."""
    request = tick(pipeline, moment, instance)
    assert isinstance(request, dg.RunRequest)
    assert request.run_key == request.partition_key is not None
    return request.partition_key, request.tags["ftpipeline/week"]


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        pytest.param(datetime(2026, 3, 29, 23, 59, 59, tzinfo=BERLIN), ("2026-03-16", "2026-W12"), id="spring-before"),
        pytest.param(datetime(2026, 3, 30, 0, 0, tzinfo=BERLIN), ("2026-03-23", "2026-W13"), id="spring-after"),
        pytest.param(datetime(2026, 3, 29, 22, 0, tzinfo=UTC), ("2026-03-23", "2026-W13"), id="spring-in-utc"),
        pytest.param(datetime(2026, 3, 29, 3, 0, tzinfo=BERLIN), ("2026-03-16", "2026-W12"), id="the-night-itself"),
        pytest.param(datetime(2026, 10, 25, 23, 59, 59, tzinfo=BERLIN), ("2026-10-12", "2026-W42"), id="autumn-before"),
        pytest.param(datetime(2026, 10, 26, 0, 0, tzinfo=BERLIN), ("2026-10-19", "2026-W43"), id="autumn-after"),
        pytest.param(datetime(2026, 10, 25, 22, 59, tzinfo=UTC), ("2026-10-12", "2026-W42"), id="autumn-in-utc-before"),
        pytest.param(datetime(2026, 10, 25, 23, 0, tzinfo=UTC), ("2026-10-19", "2026-W43"), id="autumn-in-utc-after"),
        pytest.param(datetime(2027, 1, 4, 4, 0, tzinfo=BERLIN), ("2026-12-28", "2026-W53"), id="week-53"),
        pytest.param(datetime(2027, 1, 11, 4, 0, tzinfo=BERLIN), ("2027-01-04", "2027-W01"), id="after-week-53"),
    ],
)
def test_a_tick_asks_for_the_week_that_just_ended(
    berlin: Pipeline, without_runs: dg.DagsterInstance, moment: datetime, week: tuple[str, str]
) -> None:
    assert asked_for(berlin, moment, without_runs) == week


def test_both_occurrences_of_the_repeated_hour_ask_for_one_week(
    tmp_path: Path, without_runs: dg.DagsterInstance
) -> None:
    """Weeks that start on Sunday begin in the night in which Berlin sets its clocks back."""
    pipeline = berlin_pipeline(tmp_path, "sunday")
    moments = (datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=BERLIN) for fold in (0, 1))
    assert {asked_for(pipeline, moment, without_runs) for moment in moments} == {("2026-10-18", "2026-W43")}


def test_before_the_end_of_the_first_week_a_tick_is_skipped_with_a_reason(
    berlin: Pipeline, without_runs: dg.DagsterInstance
) -> None:
    skipped = tick(berlin, datetime(2025, 1, 12, 12, tzinfo=BERLIN), without_runs)
    assert isinstance(skipped, dg.SkipReason)
    assert skipped.skip_message == "the first week of tiny starts on 2025-01-06"
    assert asked_for(berlin, datetime(2025, 1, 13, tzinfo=BERLIN), without_runs)[0] == "2025-01-06"


@dg.job(name="job")
def an_empty_job() -> None:
    """Stands for the job of the pipeline."""


def test_what_the_schedule_started_for_a_week_it_does_not_start_again(berlin: Pipeline, tmp_path: Path) -> None:
    """Whatever became of that run. What people start by hand is no reason to skip: it may be a part of a week."""
    monday = datetime(2026, 11, 9, 4, 0, tzinfo=UTC)
    week, schedule = {"ftpipeline/week": "2026-W45"}, {"dagster/schedule_name": "tiny_weekly"}
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        an_empty_job.execute_in_process(instance=instance, tags=week)
        an_empty_job.execute_in_process(instance=instance, tags=schedule | {"ftpipeline/week": "2026-W44"})
        assert isinstance(tick(berlin, monday, instance), dg.RunRequest)
        started = an_empty_job.execute_in_process(instance=instance, tags=schedule | week)
        skipped = tick(berlin, monday, instance)
    assert isinstance(skipped, dg.SkipReason)
    assert skipped.skip_message == f"week 2026-W45 was started before, as run {started.run_id}"


@settings(max_examples=30)  # Dagster lists every partition each time
@given(moment=st.datetimes(datetime(2025, 1, 14), datetime(2027, 6, 1), timezones=st.just(UTC)))
def test_the_week_asked_for_has_ended_and_is_the_last_partition_that_has(
    berlin: Pipeline, without_runs: dg.DagsterInstance, moment: datetime
) -> None:
    key, name = asked_for(berlin, moment, without_runs)
    assert key == weekly_partitions(berlin).get_partition_keys(current_time=moment)[-1]
    start, end = berlin.file.week.calendar.bounds(date.fromisoformat(key))
    assert start < end <= moment
    assert name == iso_name(date.fromisoformat(key))


@pytest.mark.parametrize("starts", DAYS)
def test_partition_keys_are_first_days_whatever_day_that_is(tmp_path: Path, starts: str) -> None:
    pipeline = berlin_pipeline(tmp_path, starts)
    partitions, calendar = weekly_partitions(pipeline), pipeline.file.week.calendar
    assert partitions.get_first_partition_key() == pipeline.file.week.first
    first_day = calendar.week_of(datetime(2026, 3, 29, 12, tzinfo=BERLIN))  # an hour of this week does not exist
    window = partitions.time_window_for_partition_key(first_day.isoformat())
    assert (window.start, window.end) == calendar.bounds(first_day)


def test_the_schedule_is_off_until_a_person_starts_it_and_runs_where_the_file_says(tmp_path: Path) -> None:
    schedule = weekly_schedule(berlin_pipeline(tmp_path, cron="0 5 * * 2", timezone="Europe/Berlin"), "job")
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 5 * * 2", "Europe/Berlin")
