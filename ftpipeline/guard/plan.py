"""From a trace to what is done with every job of the cut: exactly one action each (contract C9)."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from ftpipeline.errors import InputError
from ftpipeline.guard.lineage import Job, Position
from ftpipeline.guard.trace import JobState, JobTaint, Trace, TraceVerdict


class Action(StrEnum):
    """What is done with a job."""

    NONE = "none"
    HALT = "halt"
    """It may not go on until the record can be verified; nothing of it is marked."""
    ROLLBACK = "rollback"
    """What is tainted is quarantined, and its pointers go back to its last clean checkpoint."""
    QUARANTINE = "quarantine"
    """All of it is quarantined, because nothing clean of it is left."""


@dataclass(frozen=True)
class JobAction:
    """The one action for a job, and its scope.

    Attributes:
        stop: whether it trains now and is to be ended safely first.
        tainted_from: earliest position that may not be used any more; None if all of it may.
        rollback_to: checkpoint that its pointers go back to; None unless the action is a rollback.
        quarantined: retained checkpoints that are marked, oldest first.
        reason: why, in one line.
    """

    job_id: str
    action: Action
    reason: str
    stop: bool = False
    tainted_from: Position | None = None
    rollback_to: Position | None = None
    quarantined: tuple[Position, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON; a position is [attempt, step]."""
        return asdict(self)


def plan(trace: Trace, jobs: Iterable[Job]) -> tuple[JobAction, ...]:
    """Return one action for every job of the trace, by job id.

    Args:
        trace: the findings.
        jobs: the jobs they were found of.

    Raises:
        InputError: the jobs are not those of the trace.
    """
    cut = {job.job_id: job for job in jobs}
    cut |= {job_id: Job(job_id) for job_id in trace.unlisted}
    found = {finding.job_id: finding for finding in trace.jobs}
    if cut.keys() != found.keys():
        missing = ", ".join(sorted(cut.keys() ^ found.keys()))
        raise InputError(f"jobs and trace differ in {missing}; plan with the jobs that were traced")
    return tuple(_act(found[job_id], cut[job_id], trace.verdict) for job_id in sorted(cut))


def _act(finding: JobTaint, job: Job, verdict: TraceVerdict) -> JobAction:
    if finding.tainted_from is not None:
        return _isolate(finding, finding.tainted_from, job)
    if finding.state is JobState.UNKNOWN:
        return JobAction(job.job_id, Action.HALT, "what it consumed cannot be verified", stop=job.running)
    if verdict is TraceVerdict.HALT and job.running:
        return JobAction(job.job_id, Action.HALT, "the record of a job beside it cannot be verified", stop=True)
    return JobAction(job.job_id, Action.NONE, "consumed nothing that is tainted")


def _isolate(finding: JobTaint, since: Position, job: Job) -> JobAction:
    back = finding.rollback_to
    tainted = tuple(sorted(position for position in job.checkpoints if position >= since))
    by = f"by {finding.witness[-1].producer}" if finding.witness else "by itself"
    left = "no clean checkpoint is left" if back is None else f"clean up to attempt {back.attempt}, step {back.step}"
    return JobAction(
        job_id=job.job_id,
        action=Action.QUARANTINE if back is None else Action.ROLLBACK,
        reason=f"tainted {by}; {left}",
        stop=job.running,
        tainted_from=since,
        rollback_to=back,
        quarantined=tainted,
    )
