"""The job that replays a job of an incident, and shows what that says of the cause."""

from typing import TYPE_CHECKING

import dagster as dg

from ftpipeline.errors import FtpipelineError
from ftpipeline.orchestration.failures import as_failure
from ftpipeline.orchestration.isolation_runs import INCIDENT_TAG
from ftpipeline.orchestration.observe import LogObserver
from ftpipeline.orchestration.quarantine import PARTITIONS, QUARANTINE, affected_jobs, partition_of, shown
from ftpipeline.orchestration.workbench import Workbench

if TYPE_CHECKING:
    from ftpipeline.cycle.incident import Incident

REPLAY_JOB = "replay_job"
_OP = "replay"
_SEEDS = 3


class ReplayConfig(dg.Config):
    """Which job of an isolated incident is replayed, and under how many seeds each arm is."""

    job: str
    seeds: int = _SEEDS


def run_config(job_id: str, seeds: int = _SEEDS) -> dict[str, object]:
    """Return the configuration of a run that replays a job."""
    return {"ops": {_OP: {"config": {"job": job_id, "seeds": seeds}}}}


def replay_job(workbench: Workbench) -> dg.JobDefinition:
    """Return the job; run again, it reuses the replays that were made and goes on with the ones that are left."""

    @dg.op(name=_OP, description="Trains an exposed job again, as recorded and without what is in doubt.")
    def replay(context: dg.OpExecutionContext, config: ReplayConfig) -> None:
        incident = _replayed(context, workbench, config)
        _show(context, workbench, incident, config.job)

    @dg.job(
        name=REPLAY_JOB,
        executor_def=dg.in_process_executor,
        description="Replays the job that its configuration names, to tell what made it diverge.",
    )
    def job() -> None:
        replay()

    return job


def _replayed(context: dg.OpExecutionContext, workbench: Workbench, config: ReplayConfig) -> "Incident":
    """Replay a job and return the incident that exposed it.

    Raises:
        Failure: it could not be replayed, or not to the end; run it again.
    """
    from ftpipeline.cycle.replay import Replayer  # with the engine: not needed to load a code location
    from ftpipeline.cycle.watch import signer_of
    from ftpipeline.ledger.ledger import ledger_of

    store = workbench.store
    replayer = Replayer(store, ledger_of(store), signer_of(store), LogObserver(context.log), tell=context.log.info)
    try:
        made, receipt = replayer.replay(config.job, context.run_id, config.seeds)
    except FtpipelineError as error:
        raise as_failure(error) from error
    context.log.info(f"{config.job}: {made.attribution.cause}, receipt {receipt}")
    return made.case.incident


def _show(context: dg.OpExecutionContext, workbench: Workbench, incident: "Incident", job_id: str) -> None:
    """Materialise the job's partition anew, if the incident did something about it, with what is known now."""
    if job_id not in affected_jobs(incident):
        return
    partition = partition_of(incident, job_id)
    context.instance.add_dynamic_partitions(str(PARTITIONS.name), [partition])
    metadata = shown(workbench.store, partition)
    tags = {INCIDENT_TAG: incident.name}
    context.log_event(dg.AssetMaterialization(QUARANTINE, partition=partition, metadata=metadata, tags=tags))
