"""The divergence sensor in a running deployment: Dagster's own daemon asks, and a run of its own isolates."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.scan_interval import INTERVAL_VARIABLE
from ftpipeline.orchestration.isolation_runs import INCIDENT_TAG
from ftpipeline.orchestration.quarantine import QUARANTINE
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.fleet_world import World, six_jobs
from ftpipeline_tests.orchestration.servers import Deployment, dagster_dev, deployment, needs_proc, wait_for
from ftpipeline_tests.tiny_pipeline import build_tiny_pipeline

pytestmark = [pytest.mark.slow, needs_proc, pytest.mark.timeout(420)]


@pytest.fixture
def place(tmp_path: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    monkeypatch.setenv(INTERVAL_VARIABLE, "1")
    return deployment(tmp_path, build_tiny_pipeline(tmp_path / "pipeline"))


@pytest.fixture
def store(place: Deployment) -> Iterator[Store]:
    with closing(place.home.open()) as store:
        yield store


@pytest.fixture
def world(store: Store) -> World:
    return six_jobs(store)


def isolated(store: Store) -> Incident | None:
    return next((incident for incident in Incidents(store.database).all() if incident.isolated), None)


def test_the_daemon_isolates_a_divergence_that_stands_in_the_ledger(place: Deployment, world: World) -> None:
    with dagster_dev(place), dg.DagsterInstance.get() as instance:
        incident = wait_for(lambda: isolated(world.store), 240, "isolation of the incident")
        [run] = instance.get_runs(dg.RunsFilter(tags={INCIDENT_TAG: incident.name}))
        wait_for(lambda: instance.get_run_by_id(run.run_id).is_success or None, 60, "end of the run")  # type: ignore[union-attr]
        keys = sorted(f"{incident.name}.{job_id}" for job_id in "ABCF")
        assert sorted(instance.get_dynamic_partitions("quarantine")) == keys
        assert sorted(instance.get_materialized_partitions(QUARANTINE)) == keys
    assert run.tags["dagster/run_key"] == f"isolate-{incident.name}"
    assert [head.job_id for head in world.ledger.jobs(open_only=True)] == ["D", "E"]
