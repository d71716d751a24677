"""Isolates an incident from the command line, as a run of Dagster's, so that the UI shows it."""

from typing import TYPE_CHECKING

from ftpipeline.orchestration.divergence import guard_definitions
from ftpipeline.orchestration.isolation_runs import INCIDENT_TAG, ISOLATION_JOB, run_config
from ftpipeline.orchestration.outcome import failure
from ftpipeline.orchestration.run import QUIET_CONSOLE, persistent_instance
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.store.home import Home

if TYPE_CHECKING:
    from ftpipeline.cycle.incident import Incident


def isolate_now(home: Home, incident: str) -> "Incident":
    """Run the isolation job for an incident to its end.

    Raises:
        FtpipelineError: the error that the run failed with.
        StoreError: Dagster's instance cannot be used.
    """
    from ftpipeline.cycle.incident import Incidents

    workbench = Workbench(home)
    job = guard_definitions(workbench).resolve_job_def(ISOLATION_JOB)
    with persistent_instance(home) as instance:
        result = job.execute_in_process(
            run_config={**run_config(incident), **QUIET_CONSOLE},
            instance=instance,
            tags={INCIDENT_TAG: incident},
            raise_on_error=False,
        )
    if not result.success:
        raise failure(result)
    return Incidents(workbench.store.database).get(incident)
