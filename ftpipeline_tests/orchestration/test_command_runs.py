"""Runs of the command line: what the UI shows of them, however they end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.engine.holder import this_process
from ftpipeline.errors import SourceUnavailableError, StoreError
from ftpipeline.orchestration.dead_runs import PROCESS_TAG, bury
from ftpipeline.orchestration.run import persistent_instance, run_week
from ftpipeline.orchestration.workbench import unheard
from ftpipeline.store.home import Home
from ftpipeline_tests.cli.command import named_places_only
from ftpipeline_tests.engine.test_runner import Heard
from ftpipeline_tests.faults.disk import no_space_beyond
from ftpipeline_tests.orchestration.location import LEARNING
from ftpipeline_tests.orchestration.servers import ROOT, needs_proc, wait_for
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline

JOB = "tiny_job"
FOR_EVER = 1_000_000
STOPPED_LINE = "error: WorkerInterruptedError: stopped; what is finished is kept, run again\n"


@pytest.fixture(autouse=True)
def places() -> Iterator[None]:
    with named_places_only():
        yield


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def lines(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[str]:
    entries = instance.all_logs(run.run_id)
    return [entry.dagster_event.message or "" if entry.dagster_event else entry.user_message for entry in entries]


def test_the_lines_of_a_command_are_in_the_event_log_and_not_on_the_terminal(
    tmp_path: Path, home: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    file = build_tiny_pipeline(tmp_path / "pipeline")
    (file.parent / "tickets.duckdb").unlink()
    with pytest.raises(SourceUnavailableError):
        run_week(pipelines.load(file), home, date.fromisoformat(WEEK), unheard, Heard())
    assert capfd.readouterr() == ("", "")
    with persistent_instance(home) as instance:
        (run,) = instance.get_runs()
        assert "base_model: executing" in lines(instance, run)
        assert run.status is dg.DagsterRunStatus.FAILURE


def begun(instance: dg.DagsterInstance, tags: dict[str, str]) -> dg.DagsterRun:
    """Return a run that has not ended."""
    run = instance.create_run_for_job(dg.GraphDefinition(name=JOB).to_job(name=JOB), tags=tags)
    instance.report_run_canceling(run)
    return run


@needs_proc
def test_only_a_run_whose_process_has_ended_is_reported_as_failed(home: Home) -> None:
    living = this_process()
    host, pid, machine, start, token = living.split(":")
    ended = ":".join((host, pid, machine, str(int(start) - 1), token))  # the pid's former owner
    with persistent_instance(home) as instance:
        runs = [begun(instance, tags) for tags in ({PROCESS_TAG: ended}, {PROCESS_TAG: living}, {})]
        bury(instance, "another_job")
        assert [status(instance, run) for run in runs] == ["CANCELING"] * 3
        bury(instance, JOB)
        assert [status(instance, run) for run in runs] == ["FAILURE", "CANCELING", "CANCELING"]
        assert any(ended in line for line in lines(instance, runs[0]))


def status(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status.value


def test_an_instance_whose_disk_is_full_is_one_line(home: Home) -> None:
    with pytest.raises(StoreError, match="free space") as caught, no_space_beyond(20_000), persistent_instance(home):
        pass
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


def test_settings_of_the_instance_that_cannot_be_used_are_one_line(home: Home) -> None:
    home.dagster_home.mkdir(parents=True)
    (home.dagster_home / "dagster.yaml").write_text("telemetry: [", "utf-8")
    with pytest.raises(StoreError, match=r"dagster\.yaml"), persistent_instance(home):
        pass


def test_the_settings_of_the_instance_hold_for_commands_too(home: Home, tmp_path: Path) -> None:
    home.dagster_home.mkdir(parents=True)
    (home.dagster_home / "dagster.yaml").write_text(f"storage:\n  sqlite:\n    base_dir: {tmp_path}/other\n", "utf-8")
    with persistent_instance(home) as instance:
        storage = instance.get_ref().storage_data
        assert storage is not None
        assert storage.config_dict["base_dir"] == f"{tmp_path}/other"


@pytest.mark.slow
@needs_proc
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("number", "to_group"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_stopped_command_says_one_line_and_its_run_is_canceled(
    tmp_path: Path, home: Home, number: signal.Signals, to_group: bool
) -> None:
    file = build_tiny_pipeline(tmp_path / "pipeline", train={**LEARNING, "max_steps": FOR_EVER})
    command = [sys.executable, "-m", "ftpipeline", "run", str(file), "--week", WEEK, "--home", str(home.root)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as process:
        with persistent_instance(home) as instance:
            wait_for(lambda: trains(instance) or None, 120, "the training")
        (os.killpg if to_group else os.kill)(process.pid, number)
        _, said = process.communicate()
    assert (process.returncode, said) == (3, STOPPED_LINE)
    with persistent_instance(home) as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.CANCELED


def trains(instance: dg.DagsterInstance) -> bool:
    """Tell whether a run's log shows that its training got on."""
    return any(f"/{FOR_EVER}" in line for run in instance.get_runs() for line in lines(instance, run))
