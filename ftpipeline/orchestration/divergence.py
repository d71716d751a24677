"""The sensor that watches training jobs, and the job that isolates what it finds.

What was looked at is remembered in the database of the home, job by job: the sensor's cursor only shows what the last
tick saw, and resetting it changes nothing.
"""

import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import dagster as dg

from ftpipeline.cycle.scan_interval import scan_interval
from ftpipeline.errors import FtpipelineError
from ftpipeline.orchestration.failures import as_failure
from ftpipeline.orchestration.isolation_runs import INCIDENT_TAG, ISOLATION_JOB, bury_silent, isolation_request
from ftpipeline.orchestration.quarantine import (
    PARTITIONS,
    QUARANTINE,
    affected_jobs,
    failed_checks,
    partition_of,
    quarantine_asset,
    shown,
)
from ftpipeline.orchestration.replay import replay_job
from ftpipeline.orchestration.terminate import DagsterTerminator
from ftpipeline.orchestration.workbench import Workbench

if TYPE_CHECKING:
    from ftpipeline.cycle.incident import Incident
    from ftpipeline.cycle.watch import Watch

SENSOR = "divergence_sensor"


class IsolationConfig(dg.Config):
    """Which incident a run isolates."""

    incident: str


@cache
def guard_definitions(workbench: Workbench) -> dg.Definitions:
    """Return the sensor, its job, the one that replays, and the quarantine asset: one of each for all pipelines."""
    job = isolation_job(workbench)
    return dg.Definitions(
        assets=[quarantine_asset(workbench)],
        jobs=[job, replay_job(workbench)],
        sensors=[divergence_sensor(workbench, job)],
    )


def divergence_sensor(workbench: Workbench, job: dg.JobDefinition) -> dg.SensorDefinition:
    """Return the sensor, which runs from the moment that the code location is loaded."""

    @dg.sensor(
        name=SENSOR,
        job=job,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=scan_interval(),
        description="Looks at what is new of every training job, and isolates those that diverge.",
    )
    def body(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        from ftpipeline.cycle.isolation import is_isolating
        from ftpipeline.cycle.watch import watch
        from ftpipeline.ledger.ledger import ledger_of

        store = workbench.store
        seen = watch(store, ledger_of(store))
        if seen.waiting and not is_isolating(store):
            bury_silent(context.instance)
        return _answer(context.instance, seen)

    return body


def _answer(instance: dg.DagsterInstance, seen: "Watch") -> dg.SensorResult:
    """Return the runs to start for a look at the fleet; without any, the reasons why there are none."""
    answers = [isolation_request(instance, incident) for incident in seen.waiting]
    requests = [answer for answer in answers if isinstance(answer, dg.RunRequest)]
    under_way = [str(answer.skip_message) for answer in answers if isinstance(answer, dg.SkipReason)]
    said = "; ".join([*_seen(seen), *under_way])
    cursor = json.dumps({"last tick": said})
    return dg.SensorResult(run_requests=requests, skip_reason=None if requests else said, cursor=cursor)


def _seen(seen: "Watch") -> list[str]:
    """Return what a look at the fleet came to, in words."""
    stages = Counter(verdict.detection.stage.value for verdict in seen.scan.verdicts)
    counted = ", ".join(f"{count} {stage}" for stage, count in sorted(stages.items()))
    looked = f"{len(seen.scan.verdicts)} jobs had something new" + (f": {counted}" if counted else "")
    waiting = [f"{seen.scan.waiting} jobs are left for the next tick"] if seen.scan.waiting else []
    unusable = [
        f"{verdict.unusable} events or points of {verdict.job_id} could not be used ({verdict.reasons[0]})"
        for verdict in seen.scan.verdicts
        if verdict.unusable
    ]
    unread = [f"{job_id} could not be read ({reason})" for job_id, reason in seen.scan.unread]
    opened = [f"incident {incident.name}: {incident.job_id} diverged" for incident in seen.opened]
    return [looked, *opened, *waiting, *unusable, *unread]


def isolation_job(workbench: Workbench) -> dg.JobDefinition:
    """Return the job that isolates an incident and shows what was done; it may be run again at any time."""

    @dg.op(name="isolate", description="Stops, marks and rolls back what an incident has tainted.")
    def isolate(context: dg.OpExecutionContext, config: IsolationConfig) -> None:
        incident = _isolated(context, workbench, config.incident)
        _show(context, workbench, incident)

    @dg.job(
        name=ISOLATION_JOB,
        executor_def=dg.in_process_executor,
        description="Isolates the incident that its configuration names; started by the divergence sensor.",
    )
    def job() -> None:
        isolate()

    return job


def _isolated(context: dg.OpExecutionContext, workbench: Workbench, name: str) -> "Incident":
    """Isolate an incident.

    Raises:
        Failure: it could not be isolated, or not yet to the end; run it again.
    """
    from ftpipeline.cycle.isolation import Isolator
    from ftpipeline.cycle.watch import signer_of
    from ftpipeline.ledger.ledger import ledger_of

    store = workbench.store
    terminator = DagsterTerminator(context.instance)
    isolator = Isolator(store, ledger_of(store), signer_of(store), terminator, context.log.info)
    try:
        return isolator.isolate(name)
    except FtpipelineError as error:
        raise as_failure(error) from error


def _show(context: dg.OpExecutionContext, workbench: Workbench, incident: "Incident") -> None:
    """Materialise a partition for every job that something was done about, and fail the checks of what they made."""
    keys = {partition_of(incident, job_id): job_id for job_id in affected_jobs(incident)}
    context.instance.add_dynamic_partitions(str(PARTITIONS.name), list(keys))
    for partition in keys:
        metadata = shown(workbench.store, partition)
        tags = {INCIDENT_TAG: incident.name}
        context.log_event(dg.AssetMaterialization(QUARANTINE, partition=partition, metadata=metadata, tags=tags))
    for failed in failed_checks(incident):
        context.instance.report_runless_asset_event(failed)
