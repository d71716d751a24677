"""Runs whose command was killed: nothing of Dagster's looks for them, so the next command reports them as failed."""

import dagster as dg

from ftpipeline.engine.holder import is_gone

PROCESS_TAG = "ftpipeline/process"
"""The process that executes a run, as `ftpipeline.engine.holder` writes it."""
_UNFINISHED = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def bury(instance: dg.DagsterInstance, job: str) -> None:
    """Report the runs of a job as failed that a command of this machine began and did not live to end."""
    for run in instance.get_runs(dg.RunsFilter(job_name=job, statuses=_UNFINISHED)):
        holder = run.tags.get(PROCESS_TAG)
        if holder is not None and is_gone(holder):
            instance.report_run_failed(run, f"The process {holder} of this run has ended without a word; run it again.")
