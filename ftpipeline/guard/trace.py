"""Who is tainted, since when, by which path, and where each can go back to (contract C9).

A missing, forked or unverifiable chain hides consumptions: whatever lies behind it is unknown, and the verdict is HALT.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from ftpipeline.errors import UnknownNameError
from ftpipeline.guard.closure import Taint, close
from ftpipeline.guard.lineage import START, Chain, Edge, Incident, Job, Position

_EVER = Position(2**62, 0)  # later than every position: taken where it is not recorded when something was produced


class TraceVerdict(StrEnum):
    """What a trace amounts to."""

    NO_DIVERGENCE = "NO_DIVERGENCE"
    ISOLATED = "ISOLATED"
    """No other job consumed what the source made in the window."""
    CONTAMINATION_TRACED = "CONTAMINATION_TRACED"
    UNRECOVERABLE_CONTAMINATION = "UNRECOVERABLE_CONTAMINATION"
    """A job of the taint has no clean checkpoint left."""
    HALT = "HALT"
    """The record does not suffice for any of the others."""


class JobState(StrEnum):
    """What is known of a job."""

    SOURCE = "source"
    TAINTED = "tainted"
    CLEAN = "clean"
    UNKNOWN = "unknown"


class Exposure(StrEnum):
    """What a ledger can prove of a cause: that a job was exposed to it, never that it caused anything."""

    NOT_EXPOSED = "NOT_EXPOSED"
    EXPOSED_UNTESTED = "EXPOSED_UNTESTED"


@dataclass(frozen=True)
class JobTaint:
    """The finding on one job.

    Attributes:
        tainted_from: earliest tainted position; None unless source or tainted.
        witness: consumptions that lead from a source to that position; empty for a source.
        rollback_to: greatest retained checkpoint before it; None where there is none.
        unrecoverable: whether a checkpoint to go back to is needed and missing.
        exposure: whether another job's work can have shaped what is wrong here.
    """

    job_id: str
    state: JobState
    tainted_from: Position | None = None
    witness: tuple[Edge, ...] = ()
    rollback_to: Position | None = None
    unrecoverable: bool = False
    exposure: Exposure = Exposure.NOT_EXPOSED


@dataclass(frozen=True)
class SharedCause:
    """An input that no job made and that a source shares with other jobs: a possible cause, never a path of taint."""

    digest: str
    jobs: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """The findings on every job of a cut.

    Attributes:
        jobs: one finding a job, by job id.
        unlisted: jobs that edges name and the cut lacks; their chains count as missing.
    """

    verdict: TraceVerdict
    jobs: tuple[JobTaint, ...]
    shared_causes: tuple[SharedCause, ...] = ()
    unlisted: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON; a position is [attempt, step]."""
        return asdict(self)


def trace(incidents: Sequence[Incident], jobs: Iterable[Job], edges: Iterable[Edge]) -> Trace:
    """Trace divergences through a cut.

    Args:
        incidents: confirmed divergences, at most one a job.
        jobs: every job of the cut and every artifact that they made.
        edges: every consumption that is recorded, in any order; repetitions count once.

    Raises:
        UnknownNameError: an incident names a job that is not in the cut.
    """
    consumptions = set(edges)
    cut = {job.job_id: job for job in jobs}
    named = {job_id for edge in consumptions for job_id in (edge.producer, edge.consumer)}
    unlisted = sorted(named - cut.keys())
    cut |= {job_id: Job(job_id, chain=Chain.MISSING) for job_id in unlisted}
    seeds = _seeds(incidents, cut)
    proven = close(_proven(consumptions), seeds)
    possible = close(_possible(consumptions), _possible_seeds(cut, seeds))
    exposed = _exposed(incidents, consumptions)
    found = [_finding(cut[job_id], seeds, proven, possible, exposed) for job_id in sorted(cut)]
    causes = _shared_causes(seeds, cut.values())
    return Trace(_verdict(found, cut.values()), tuple(found), causes, tuple(unlisted))


def _seeds(incidents: Sequence[Incident], cut: Mapping[str, Job]) -> dict[str, Position]:
    seeds: dict[str, Position] = {}
    for incident in incidents:
        if incident.job_id not in cut:
            raise UnknownNameError(f"diverged job {incident.job_id!r} is not in the cut; cut the ledger again")
        seeds[incident.job_id] = min(incident.begins, seeds.get(incident.job_id, incident.begins))
    return seeds


def _proven(edges: Iterable[Edge]) -> list[Edge]:
    """Return the edges that can taint for certain; one that was consumed at an unknown time taints from the start."""
    known = (edge for edge in edges if edge.produced_at is not None)
    return [edge if edge.consumed_at is not None else replace(edge, consumed_at=START) for edge in known]


def _possible(edges: Iterable[Edge]) -> list[Edge]:
    """Return all edges, each as early and as late as its record allows."""
    return [
        replace(edge, produced_at=edge.produced_at or _EVER, consumed_at=edge.consumed_at or START) for edge in edges
    ]


def _possible_seeds(cut: Mapping[str, Job], seeds: Mapping[str, Position]) -> dict[str, Position]:
    """Return the seeds, with every job whose chain may hide a consumption."""
    broken = {job.job_id: START for job in cut.values() if job.chain is not Chain.VERIFIED}
    return {**seeds, **broken}


def _exposed(incidents: Sequence[Incident], edges: Iterable[Edge]) -> set[str]:
    """Return the sources that had consumed another job's work when their disturbance began."""
    onsets = {incident.job_id: incident.onset for incident in incidents}
    return {
        edge.consumer
        for edge in edges
        if edge.consumer in onsets
        and edge.producer != edge.consumer
        and (edge.consumed_at is None or edge.consumed_at <= onsets[edge.consumer])
    }


def _finding(
    job: Job,
    seeds: Mapping[str, Position],
    proven: Mapping[str, Taint],
    possible: Mapping[str, Taint],
    exposed: set[str],
) -> JobTaint:
    taint = proven.get(job.job_id)
    untested = Exposure.EXPOSED_UNTESTED
    if taint is None:
        if job.job_id in possible:
            return JobTaint(job.job_id, JobState.UNKNOWN, exposure=untested)
        return JobTaint(job.job_id, JobState.CLEAN)
    is_source = job.job_id in seeds
    clean = [position for position in job.checkpoints if position < taint.since]
    proves = is_source and job.job_id not in exposed and job.chain is Chain.VERIFIED
    return JobTaint(
        job_id=job.job_id,
        state=JobState.SOURCE if is_source else JobState.TAINTED,
        tainted_from=taint.since,
        witness=taint.path(),
        rollback_to=max(clean, default=None),
        unrecoverable=not clean and not job.is_artifact,
        exposure=Exposure.NOT_EXPOSED if proves else untested,
    )


def _verdict(found: Sequence[JobTaint], cut: Iterable[Job]) -> TraceVerdict:
    states = {finding.state for finding in found}
    if JobState.UNKNOWN in states or any(job.chain is not Chain.VERIFIED for job in cut):
        return TraceVerdict.HALT
    if JobState.SOURCE not in states:
        return TraceVerdict.NO_DIVERGENCE
    if JobState.TAINTED not in states and not any(finding.witness for finding in found):
        return TraceVerdict.ISOLATED
    if any(finding.unrecoverable for finding in found):
        return TraceVerdict.UNRECOVERABLE_CONTAMINATION
    return TraceVerdict.CONTAMINATION_TRACED


def _shared_causes(seeds: Mapping[str, Position], cut: Iterable[Job]) -> tuple[SharedCause, ...]:
    users: dict[str, list[str]] = {}
    for job in sorted(cut, key=lambda job: job.job_id):
        for digest in job.external:
            users.setdefault(digest, []).append(job.job_id)
    shared = {digest: jobs for digest, jobs in users.items() if len(jobs) > 1 and set(jobs) & seeds.keys()}
    return tuple(SharedCause(digest, tuple(jobs)) for digest, jobs in sorted(shared.items()))
