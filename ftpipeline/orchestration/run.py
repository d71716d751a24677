"""Run one week through Dagster from the command line, in a persistent instance, so that the UI shows it."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import yaml
from sqlalchemy.exc import DBAPIError

from ftpipeline.engine.holder import this_process
from ftpipeline.errors import StoreError, UnknownNameError, WorkerInterruptedError
from ftpipeline.orchestration.build import build_definitions, job_name
from ftpipeline.orchestration.dead_runs import PROCESS_TAG, bury
from ftpipeline.orchestration.outcome import STOPPED, failure
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
_SETTINGS, _COMMAND_SETTINGS = "dagster.yaml", "ftpipeline-run.yaml"
# Dagster tails a step's output from processes that a terminal's Ctrl-C reaches too; a command's output is on it anyway.
_NO_OUTPUT_KEPT = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
# The console alone is quiet: every line is in the run's event log, where the UI shows it.
QUIET_CONSOLE = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


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
        StoreError: Dagster's instance cannot be used.
        WorkerInterruptedError: SIGINT or SIGTERM has come; the run is recorded as canceled.
    """
    stages: dict[str, StepResult] = {}

    def heard(stage: str, result: StepResult) -> None:
        stages[stage] = result
        on_stage(stage, result)

    workbench = Workbench(home, heard, observer)
    _ = workbench.store  # opened first: an unusable home is one line and no run
    job = build_definitions(pipeline, workbench).resolve_job_def(job_name(pipeline))
    with persistent_instance(home) as instance, _no_last_resort():
        bury(instance, job.name)
        result = _execute(job, instance, week)
    if not result.success:
        raise failure(result)
    return WeekRun(result.run_id, week, stages)


def _execute(job: dg.JobDefinition, instance: dg.DagsterInstance, week: date) -> dg.ExecuteInProcessResult:
    """Execute the job; an interrupted run is a canceled one, which Dagster says only of those it was told to end.

    Raises:
        WorkerInterruptedError: SIGINT or SIGTERM has come.
    """
    process = this_process()
    try:
        result = job.execute_in_process(
            instance=instance,
            partition_key=week.isoformat(),
            raise_on_error=False,
            run_config=QUIET_CONSOLE,
            tags={WEEK_TAG: iso_name(week), PROCESS_TAG: process},
        )
        if not result.success and isinstance(failure(result), WorkerInterruptedError):
            raise KeyboardInterrupt
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        for run in instance.get_runs(dg.RunsFilter(tags={PROCESS_TAG: process})):
            instance.report_run_canceled(run, STOPPED)
        raise WorkerInterruptedError(STOPPED) from None
    return result


@contextmanager
def persistent_instance(home: Home) -> Iterator[dg.DagsterInstance]:
    """Open the instance under DAGSTER_HOME, which is the home's own unless the environment names one.

    Raises:
        StoreError: its folder cannot be written, its settings cannot be used, or its database fails.
    """
    folder = prepare_dagster_home(home)
    os.environ["DAGSTER_HOME"] = str(folder)
    try:
        _write_command_settings(folder)
        with dg.DagsterInstance.from_config(str(folder), _COMMAND_SETTINGS) as instance:
            yield instance
    except (OSError, DBAPIError) as error:
        problem = error.orig if isinstance(error, DBAPIError) else error
        raise StoreError(
            f"Dagster's instance {folder}: {problem}; free space on its disk, make it writable, or set DAGSTER_HOME"
        ) from error
    except (dg.DagsterInvalidConfigError, yaml.YAMLError) as error:
        raise StoreError(f"{folder / _SETTINGS}: {error}; correct it") from error


def _write_command_settings(folder: Path) -> None:
    """Write the instance's own settings, without the capture of output, beside them: Dagster reads them from files."""
    settings = yaml.safe_load((folder / _SETTINGS).read_text("utf-8")) or {}
    new = folder / f".{_COMMAND_SETTINGS}.{os.getpid()}"
    new.write_text(yaml.safe_dump(settings | {"compute_logs": _NO_OUTPUT_KEPT}), "utf-8")
    new.replace(folder / _COMMAND_SETTINGS)


def prepare_dagster_home(home: Home) -> Path:
    """Make DAGSTER_HOME usable and return it.

    Raises:
        StoreError: it cannot be written.
    """
    folder = home.dagster_home
    try:
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / _SETTINGS
        if not settings.exists():
            settings.write_text(_INSTANCE, "utf-8")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written ({error.strerror}); permit it or set DAGSTER_HOME") from error
    return folder


@contextmanager
def _no_last_resort() -> Iterator[None]:
    """Keep what libraries log off the terminal, where Python prints warnings as long as nobody handles them."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
