"""Run one week through Dagster from the command line, in a persistent instance, so that the UI shows it."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from ftpipeline.errors import FtpipelineError, StoreError, UnknownNameError, WorkerError, named
from ftpipeline.orchestration.build import build_definitions, job_name
from ftpipeline.orchestration.schedules import WEEK_TAG
from ftpipeline.orchestration.workbench import StageListener, Workbench
from ftpipeline.pipeline import Pipeline
from ftpipeline.records import StepObserver, StepResult
from ftpipeline.store.home import Home
from ftpipeline.weeks import iso_name

_INSTANCE = """\
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 60
telemetry:
  enabled: false
"""


@dataclass(frozen=True)
class WeekRun:
    """A week that was run to its end.

    Attributes:
        run_id: Dagster's identifier of the run.
        stages: results by stage, in the order they ended.
    """

    run_id: str
    week: date
    stages: dict[str, StepResult]


def choose_week(pipeline: Pipeline, text: str | None, now: datetime | None = None) -> date:
    """Return the week to run: the one named, else the last that has ended.

    Raises:
        UnknownNameError: the text names no week, or one that has not ended or lies before the pipeline's first.
    """
    calendar = pipeline.file.week.calendar
    last = calendar.last_completed(now if now is not None else datetime.now(UTC))
    week = calendar.parse(text) if text is not None else last
    if week > last:
        raise UnknownNameError(f"week {iso_name(week)} has not ended; the last one that has is {iso_name(last)}")
    if week < date.fromisoformat(pipeline.file.week.first):
        raise UnknownNameError(f"week {iso_name(week)} lies before week.first, {pipeline.file.week.first}")
    return week


def run_week(pipeline: Pipeline, home: Home, week: date, on_stage: StageListener, observer: StepObserver) -> WeekRun:
    """Run every stage of a week.

    Raises:
        FtpipelineError: the error of the stage that failed, of its own class.
    """
    stages: dict[str, StepResult] = {}

    def heard(stage: str, result: StepResult) -> None:
        stages[stage] = result
        on_stage(stage, result)

    workbench = Workbench(home, heard, observer)
    _ = workbench.store  # opened first: an unusable home is one line and no run
    definitions = build_definitions(pipeline, workbench)
    with persistent_instance(home) as instance, _quiet_dagster():
        result = definitions.resolve_job_def(job_name(pipeline)).execute_in_process(
            instance=instance,
            partition_key=week.isoformat(),
            raise_on_error=False,
            tags={WEEK_TAG: iso_name(week)},
        )
    if not result.success:
        raise _failure(result)
    return WeekRun(result.run_id, week, stages)


@contextmanager
def persistent_instance(home: Home) -> Iterator[dg.DagsterInstance]:
    """Open the instance under DAGSTER_HOME, which is the home's own unless the environment names one.

    Raises:
        StoreError: its folder cannot be written.
    """
    folder = prepare_dagster_home(home)
    os.environ["DAGSTER_HOME"] = str(folder)
    with dg.DagsterInstance.get() as instance:
        yield instance


def prepare_dagster_home(home: Home) -> Path:
    """Make DAGSTER_HOME usable and return it.

    Raises:
        StoreError: it cannot be written.
    """
    folder = home.dagster_home
    try:
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "dagster.yaml"
        if not settings.exists():
            settings.write_text(_INSTANCE, "utf-8")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror}); permit it or set DAGSTER_HOME") from error
    return folder


@contextmanager
def _quiet_dagster() -> Iterator[None]:
    """Keep Dagster's event lines off the terminal; they are in the instance, where the UI shows them."""
    logger = logging.getLogger("dagster")
    level = logger.level
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        logger.setLevel(level)


def _failure(result: dg.ExecuteInProcessResult) -> FtpipelineError:
    """Return the first failed stage's error as the class it was raised as."""
    for event in result.filter_events(lambda event: event.is_step_failure):
        data = event.step_failure_data
        if data.user_failure_data is not None:
            known = data.user_failure_data.metadata or {}
            name = known["error"].value if "error" in known else ""
            said = str(data.user_failure_data.description)
            return named(str(name), said) or WorkerError(said)
        return WorkerError(
            f"stage {event.step_key} failed: {_root_cause(data.error)}; the run's log in the UI has the traceback"
        )
    return WorkerError("the run failed before its first stage; the run's log in the UI says why")


def _root_cause(error: Any) -> str:
    """Return the first line of the innermost error of a chain."""
    while error is not None and error.cause is not None:
        error = error.cause
    lines = error.message.strip().splitlines() if error is not None else []
    return lines[0] if lines else "no reason was given"
