"""Which run isolates an incident: at any time one, whatever became of earlier ones.

Dagster remembers a run_key for ever, starts a key that stands twice in one tick twice, and knows nothing of a run that
was cancelled by force. So the runs of an incident are looked for by their tag, and the key of a run that ended without
isolating its incident is not used again.
"""

import time
from typing import TYPE_CHECKING

import dagster as dg

if TYPE_CHECKING:
    from ftpipeline.cycle.incident import Incident

ISOLATION_JOB = "isolation_job"
INCIDENT_TAG = "ftpipeline/incident"
_RUN_KEY_TAG, _PRIORITY_TAG = "dagster/run_key", "dagster/priority"
_FIRST_IN_LINE = "100"  # runs that train wait behind it in a full queue
_SILENT_SECONDS = 30.0


def run_config(incident: str) -> dict[str, object]:
    """Return the configuration of the run that isolates an incident."""
    return {"ops": {"isolate": {"config": {"incident": incident}}}}


def bury_silent(instance: dg.DagsterInstance) -> None:
    """Report isolation runs as failed that started a while ago; called where nobody isolates.

    They died with everything of Dagster's that would have noticed. One that lives after all does no harm: whoever
    isolates an incident again changes nothing.
    """
    started = dg.RunsFilter(job_name=ISOLATION_JOB, statuses=[dg.DagsterRunStatus.STARTED])
    for record in instance.get_run_records(started):
        if record.start_time is not None and time.time() - record.start_time > _SILENT_SECONDS:
            instance.report_run_failed(record.dagster_run, "The process of this run has ended without a word.")


def isolation_request(instance: dg.DagsterInstance, incident: "Incident") -> dg.RunRequest | dg.SkipReason:
    """Return the run to start for an incident that waits, or why none is to be started now."""
    runs = instance.get_runs(dg.RunsFilter(tags={INCIDENT_TAG: incident.name}))
    key = f"isolate-{incident.name}"
    if runs:
        last = runs[0]
        if last.status is dg.DagsterRunStatus.NOT_STARTED:  # made by a daemon that died: the same key launches it
            key = last.tags.get(_RUN_KEY_TAG, key)
        elif last.is_finished:
            key = f"{key}-redo-{len(runs)}"
        else:
            return dg.SkipReason(f"run {last.run_id} isolates incident {incident.name} ({last.status.value})")
    tags = {INCIDENT_TAG: incident.name, _PRIORITY_TAG: _FIRST_IN_LINE, "ftpipeline/job": incident.job_id}
    return dg.RunRequest(run_key=key, job_name=ISOLATION_JOB, run_config=run_config(incident.name), tags=tags)
