"""Ending a run from the UI: nothing of it trains on."""

from pathlib import Path

import dagster as dg
import pytest

from ftpipeline_tests.orchestration.servers import Deployment, Session, dagster_dev, deployment, needs_proc, wait_for
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline

pytestmark = [pytest.mark.slow, needs_proc, pytest.mark.timeout(420)]


@pytest.fixture
def long_training(tmp_path: Path, dagster_home: Path) -> Deployment:
    """A pipeline that trains for hours."""
    lora = {"r": 4, "lora_alpha": 8, "target_modules": ["query", "key", "value"]}
    train = {"seed": 1, "lr": 0.001, "max_steps": 1_000_000, "batch_size": 8, "max_length": 16, "lora": lora}
    return deployment(tmp_path, build_tiny_pipeline(tmp_path / "pipeline", train=train))


def test_terminating_a_run_ends_the_worker_that_trains(long_training: Deployment) -> None:
    with dagster_dev(long_training) as server, dg.DagsterInstance.get() as instance:
        run_id = server.launch("tiny_job", WEEK)
        wait_for(lambda: trains(instance, run_id), 180, "progress of the training")
        assert workers(server.session)
        server.terminate(run_id)
        wait_for(lambda: server.status(run_id) == "CANCELED" or None, 60, "end of the run")
        assert not workers(server.session)


def trains(instance: dg.DagsterInstance, run_id: str) -> bool | None:
    """Tell whether the log shows that the training got on."""
    run = instance.get_run_by_id(run_id)
    assert run is not None
    assert not run.is_finished
    lines = (entry.user_message for entry in instance.all_logs(run_id))
    return any(line.startswith("train: ") and "/1000000" in line for line in lines) or None


def workers(session: Session) -> list[str]:
    return [command for command in session.processes().values() if "ftpipeline.backends.train_worker" in command]
