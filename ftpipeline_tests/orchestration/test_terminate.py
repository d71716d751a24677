"""Ending runs through an instance, without a daemon."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline.errors import WorkerError
from ftpipeline.orchestration.terminate import DagsterTerminator


@dg.job
def an_empty_job() -> None:
    """Stands for a training run."""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def left(instance: dg.DagsterInstance, status: dg.DagsterRunStatus) -> str:
    """Record a run that stands at `status`; nobody launched it."""
    return instance.create_run_for_job(an_empty_job, status=status).run_id


def test_runs_that_nobody_knows_or_that_ended_count_as_ended(instance: dg.DagsterInstance) -> None:
    done = an_empty_job.execute_in_process(instance=instance).run_id
    assert DagsterTerminator(instance).terminate(["never heard of", done]) == {"never heard of", done}
    assert DagsterTerminator(instance).terminate([]) == frozenset()


def test_a_run_that_another_process_executes_itself_is_not_waited_for(instance: dg.DagsterInstance) -> None:
    """The command line executes runs in its own process; the fence in the ledger ends what they train."""
    mine = left(instance, dg.DagsterRunStatus.STARTED)
    assert DagsterTerminator(instance, patience=3600.0).terminate([mine]) == frozenset()


def test_an_instance_that_cannot_end_runs_says_so_in_one_line() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        mine = left(instance, dg.DagsterRunStatus.STARTED)
        with pytest.raises(WorkerError, match="could not be asked to end"):
            DagsterTerminator(instance).terminate([mine])
