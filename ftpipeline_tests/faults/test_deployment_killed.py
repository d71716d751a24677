"""kill -9 of a whole deployment in the middle of an isolation: daemon, code server and the run that isolates."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.isolation import is_isolating
from ftpipeline.cycle.scan_interval import INTERVAL_VARIABLE
from ftpipeline.ledger.events import Kind
from ftpipeline.orchestration.isolation_runs import INCIDENT_TAG
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.fleet_world import World, six_jobs
from ftpipeline_tests.orchestration.servers import (
    Deployment,
    Session,
    dagster_dev,
    deployment,
    needs_proc,
    wait_for,
)
from ftpipeline_tests.tiny_pipeline import build_tiny_pipeline

pytestmark = [pytest.mark.slow, needs_proc, pytest.mark.timeout(600)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    place = deployment(tmp_path, build_tiny_pipeline(tmp_path / "pipeline"))
    monkeypatch.setenv("DAGSTER_HOME", str(place.home.dagster_home))
    monkeypatch.setenv(INTERVAL_VARIABLE, "1")
    return place


@pytest.fixture
def world(place: Deployment) -> Iterator[World]:
    with closing(place.home.open()) as store:
        yield six_jobs(store)


def kill_all(session: Session) -> None:
    """End everything of a deployment as a power failure does."""
    for pid in session.processes():
        with suppress(ProcessLookupError):  # it has ended with another one
            os.kill(pid, signal.SIGKILL)
    session.leader.wait()


def isolated(store: Store) -> Incident | None:
    return next((incident for incident in Incidents(store.database).all() if incident.isolated), None)


def test_what_was_begun_before_the_power_failed_is_done_after_it_and_once(place: Deployment, world: World) -> None:
    with dagster_dev(place) as server:
        wait_for(lambda: is_isolating(world.store) or None, 120, "an isolation", 0.01)
        kill_all(server.session)
    assert isolated(world.store) is None
    with dagster_dev(place), dg.DagsterInstance.get() as instance:
        incident = wait_for(lambda: isolated(world.store), 240, "isolation of the incident")
        runs = instance.get_runs(dg.RunsFilter(tags={INCIDENT_TAG: incident.name}))
    assert len(runs) == 2
    assert len(Incidents(world.store.database).all()) == 1
    for job_id in "ABCF":
        world.ledger.verify(job_id)
        assert len(world.ledger.events(job_id, kinds=[Kind.ISOLATION_ACTION])) == 1
    assert [head.job_id for head in world.ledger.jobs(open_only=True)] == ["D", "E"]
