"""The reference form of the divergence guard, for those who compare with it: same names, same answers, same flaws.

It looks one hop far, believes every epoch it is told, and its digests leave out most of its input. It is kept for
compatibility alone; `trace` and `plan` are what the product decides with.
"""

import hashlib
import json
from dataclasses import dataclass
from enum import Enum


class DivergenceVerdict(Enum):
    """The reference's verdicts; the last one is never given."""

    NO_DIVERGENCE = 1
    DIVERGENCE_ISOLATED = 2
    CONTAMINATION_TRACED = 3
    UNRECOVERABLE_CONTAMINATION = 4


@dataclass(frozen=True)
class FineTuneJob:
    """A job; each consumed checkpoint is (job id, epoch of that job)."""

    job_id: str
    current_epoch: int
    divergent: bool
    consumed_checkpoints: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class ConcurrentTrainingState:
    """A fleet and the job that diverged, if any; an empty id counts as none."""

    jobs: tuple[FineTuneJob, ...]
    divergent_job_id: str | None
    divergence_epoch: int


@dataclass(frozen=True)
class DivergenceManifest:
    """The reference's answer."""

    verdict: DivergenceVerdict
    affected_job_ids: tuple[str, ...]
    directive: str
    manifest_digest: str


class ConcurrentFineTuneGuard:
    """The reference's one operation."""

    @classmethod
    def evaluate_divergence(cls, state: ConcurrentTrainingState) -> DivergenceManifest:
        """Return the verdict on a fleet, with the jobs that read the diverged one at or after the given epoch."""
        source = state.divergent_job_id
        if not source:
            digested: dict[str, object] = {"divergence": "NONE", "jobs": str(len(state.jobs))}
            return _answer(DivergenceVerdict.NO_DIVERGENCE, (), "PROCEED: No divergence detected.", digested)
        affected = tuple(sorted(job.job_id for job in state.jobs if _reads(job, source, state.divergence_epoch)))
        digested = {"affected": affected or "NONE", "divergent": source, "epoch": str(state.divergence_epoch)}
        if not affected:
            directive = f"PROCEED: Divergent job {source} isolated, no contamination."
            return _answer(DivergenceVerdict.DIVERGENCE_ISOLATED, (), directive, digested)
        named = f"{len(affected)} jobs: {list(affected)}"
        directive = f"ACTION: Divergent job {source} contaminated {named}. Quarantine all."
        return _answer(DivergenceVerdict.CONTAMINATION_TRACED, affected, directive, digested)


def _reads(job: FineTuneJob, source: str, epoch: int) -> bool:
    return job.job_id != source and any(of == source and at >= epoch for of, at in job.consumed_checkpoints)


def _answer(
    verdict: DivergenceVerdict, affected: tuple[str, ...], directive: str, digested: dict[str, object]
) -> DivergenceManifest:
    text = json.dumps(digested, sort_keys=True)  # the reference's digests are of this form, not of canonical JSON
    return DivergenceManifest(verdict, affected, directive, hashlib.sha256(text.encode("utf-8")).hexdigest())
