"""The divergence sensor and the isolation job, in an instance of their own, over a fleet that nobody trains."""

import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline.cycle.incident import Incidents
from ftpipeline.cycle.scan import Limits
from ftpipeline.cycle.scan_interval import INTERVAL_VARIABLE, scan_interval
from ftpipeline.errors import InputError
from ftpipeline.orchestration.divergence import SENSOR, guard_definitions
from ftpipeline.orchestration.isolation_runs import INCIDENT_TAG, ISOLATION_JOB
from ftpipeline.orchestration.quarantine import CHECK, QUARANTINE
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.store.home import Home
from ftpipeline_tests.cycle.fleet_world import World, six_jobs


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def workbench(home: Home) -> Iterator[Workbench]:
    workbench = Workbench(home)
    yield workbench
    workbench.store.close()


@pytest.fixture
def world(workbench: Workbench) -> World:
    """Six jobs, of which the first diverged."""
    return six_jobs(workbench.store)


def tick(workbench: Workbench, instance: dg.DagsterInstance, cursor: str | None = None) -> dg.SensorResult:
    """Evaluate the sensor as the daemon does."""
    sensor = guard_definitions(workbench).get_repository_def().get_sensor_def(SENSOR)
    result = sensor(dg.build_sensor_context(instance=instance, cursor=cursor))
    assert isinstance(result, dg.SensorResult)
    return result


def request(workbench: Workbench, instance: dg.DagsterInstance) -> dg.RunRequest:
    [request] = tick(workbench, instance).run_requests or []
    return request


def reason(workbench: Workbench, instance: dg.DagsterInstance) -> str:
    """Return why a tick starts nothing."""
    result = tick(workbench, instance)
    assert not result.run_requests
    assert result.skip_reason is not None
    return str(result.skip_reason.skip_message)


def execute(workbench: Workbench, instance: dg.DagsterInstance, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    """Run the isolation job as the daemon's run would."""
    job = guard_definitions(workbench).resolve_job_def(ISOLATION_JOB)
    tags = {**request.tags, "dagster/run_key": str(request.run_key)}
    return job.execute_in_process(run_config=request.run_config, instance=instance, tags=tags, raise_on_error=False)


def leave_run(
    workbench: Workbench, instance: dg.DagsterInstance, request: dg.RunRequest, status: dg.DagsterRunStatus
) -> dg.DagsterRun:
    """Record a run that was requested and came to stand at `status`."""
    job = guard_definitions(workbench).resolve_job_def(ISOLATION_JOB)
    tags = {**request.tags, "dagster/run_key": str(request.run_key)}
    return instance.create_run_for_job(job, run_config=request.run_config, tags=tags, status=status)


def test_the_first_tick_after_the_confirming_event_requests_the_isolation(
    workbench: Workbench, world: World, instance: dg.DagsterInstance
) -> None:
    asked = request(workbench, instance)
    [incident] = Incidents(workbench.store.database).waiting()
    assert incident.job_id == "A"
    assert asked.run_key == f"isolate-{incident.name}"
    assert asked.tags[INCIDENT_TAG] == incident.name
    assert asked.run_config == {"ops": {"isolate": {"config": {"incident": incident.name}}}}


def test_a_tick_without_a_divergence_says_what_it_saw(workbench: Workbench, instance: dg.DagsterInstance) -> None:
    world = World(workbench.store)
    world.open("healthy").train(130)
    world.open("young").train(5)
    assert reason(workbench, instance) == "2 jobs had something new: 1 healthy, 1 insufficient"
    assert reason(workbench, instance) == "0 jobs had something new"
    assert "0 jobs" in json.loads(str(tick(workbench, instance).cursor))["last tick"]


def test_the_isolation_run_materialises_a_partition_for_every_job_it_acted_on(
    workbench: Workbench, world: World, instance: dg.DagsterInstance
) -> None:
    result = execute(workbench, instance, request(workbench, instance))
    assert result.success
    [incident] = Incidents(workbench.store.database).all()
    keys = [f"{incident.name}.{job_id}" for job_id in "ABCF"]
    assert sorted(instance.get_dynamic_partitions("quarantine")) == keys
    materialised = [event.materialization for event in result.get_asset_materialization_events()]
    assert {each.asset_key for each in materialised} == {QUARANTINE}
    shown = {str(each.partition): each.metadata for each in materialised}
    assert sorted(shown) == keys
    c, f = shown[f"{incident.name}.C"], shown[f"{incident.name}.F"]
    assert (c["verdict"].value, c["state"].value) == ("UNRECOVERABLE_CONTAMINATION", "tainted")
    assert c["rolled back to"].value == "attempt 1, step 60"
    witness = c["witness path"]
    assert isinstance(witness, dg.TableMetadataValue)
    assert [edge.data["consumer"] for edge in witness.records] == ["B", "C"]
    assert f["state"].value == "tainted, unrecoverable"
    assert "data:image/svg+xml" in str(c["graph"].value)
    receipts = [str(c[name].value) for name in ("divergence receipt", "plan receipt", "isolation receipt")]
    assert all(Path(receipt).is_file() for receipt in receipts)


def test_the_checks_of_what_was_tainted_fail(workbench: Workbench, world: World, instance: dg.DagsterInstance) -> None:
    execute(workbench, instance, request(workbench, instance))
    key = dg.AssetCheckKey(dg.AssetKey(["tiny", "train"]), CHECK)
    [last] = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    assert last.status.value == "FAILED"


def test_after_the_isolation_no_tick_asks_again(
    workbench: Workbench, world: World, instance: dg.DagsterInstance
) -> None:
    execute(workbench, instance, request(workbench, instance))
    reason(workbench, instance)
    assert "0 jobs" in reason(workbench, instance)


def test_one_tick_never_holds_a_run_key_twice(workbench: Workbench, instance: dg.DagsterInstance) -> None:
    world = six_jobs(workbench.store)
    world.jobs["D"].train(60, float("inf"))
    requests = tick(workbench, instance).run_requests or []
    keys = [request.run_key for request in requests]
    assert len(keys) == len(set(keys)) == 2


def test_a_cursor_that_was_reset_repeats_the_request_under_the_same_key(
    workbench: Workbench, world: World, instance: dg.DagsterInstance
) -> None:
    first, second = request(workbench, instance), request(workbench, instance)
    assert first.run_key == second.run_key


@pytest.mark.parametrize(
    "status", [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
)
def test_while_a_run_waits_or_works_none_is_asked_for(
    workbench: Workbench, world: World, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    run = leave_run(workbench, instance, request(workbench, instance), status)
    assert f"run {run.run_id} isolates incident" in reason(workbench, instance)


@pytest.mark.parametrize(
    "status", [dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS]
)
def test_a_run_that_ended_without_isolating_is_done_again_under_another_key(
    workbench: Workbench, world: World, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    first = request(workbench, instance)
    leave_run(workbench, instance, first, status)
    second = request(workbench, instance)
    assert second.run_key == f"{first.run_key}-redo-1"
    leave_run(workbench, instance, second, status)
    assert request(workbench, instance).run_key == f"{first.run_key}-redo-2"


def test_a_run_that_a_dead_daemon_made_and_never_launched_is_asked_for_under_its_key(
    workbench: Workbench, world: World, instance: dg.DagsterInstance
) -> None:
    """Dagster launches a run that was not started when its key is asked for again."""
    first = request(workbench, instance)
    leave_run(workbench, instance, first, dg.DagsterRunStatus.NOT_STARTED)
    assert request(workbench, instance).run_key == first.run_key


def test_an_isolation_that_is_run_again_changes_nothing(
    workbench: Workbench, world: World, instance: dg.DagsterInstance
) -> None:
    asked = request(workbench, instance)
    execute(workbench, instance, asked)
    heads = world.ledger.jobs()
    marks = workbench.store.quarantine.marks()
    assert execute(workbench, instance, asked).success
    assert (world.ledger.jobs(), workbench.store.quarantine.marks()) == (heads, marks)


def test_an_unknown_incident_fails_the_run_with_a_reason(workbench: Workbench, instance: dg.DagsterInstance) -> None:
    asked = dg.RunRequest(run_key="k", run_config={"ops": {"isolate": {"config": {"incident": "feed"}}}})
    result = execute(workbench, instance, asked)
    assert not result.success
    [failure] = [event for event in result.all_events if event.is_step_failure]
    said = failure.step_failure_data.user_failure_data
    assert said is not None
    assert "no incident is called 'feed'" in str(said.description)


def test_a_partition_can_be_shown_again_by_hand(
    workbench: Workbench, world: World, instance: dg.DagsterInstance
) -> None:
    execute(workbench, instance, request(workbench, instance))
    [incident] = Incidents(workbench.store.database).all()
    assets = guard_definitions(workbench).get_repository_def().assets_defs_by_key
    result = dg.materialize(
        [assets[QUARANTINE]], partition_key=f"{incident.name}.B", instance=instance, raise_on_error=False
    )
    assert result.success
    [event] = result.get_asset_materialization_events()
    assert event.materialization.metadata["action"].value == "rollback"


def test_the_sensor_is_on_from_the_start_and_looks_as_often_as_the_environment_says(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INTERVAL_VARIABLE, "7")
    sensor = guard_definitions(workbench).get_repository_def().get_sensor_def(SENSOR)
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert sensor.minimum_interval_seconds == 7


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "soon"])
def test_an_interval_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(INTERVAL_VARIABLE, text)
    with pytest.raises(InputError, match=INTERVAL_VARIABLE):
        scan_interval()


def test_the_work_of_a_tick_is_bounded() -> None:
    assert Limits().jobs < 10**5
    assert Limits().events < 10**5
