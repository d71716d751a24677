"""What the guard signs: that a job diverged, what is to be done about it, what was done, and that a mark is lifted.

Every receipt is an in-toto Statement in a DSSE envelope (`ftpipeline.receipts`) and a blob of the store; its digest is
what events, marks and incidents refer to it by. `docs/formats/isolation.md` describes each predicate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftpipeline.digest import Digest, hex_of, of_json
from ftpipeline.guard.verdicts import Detection
from ftpipeline.receipts import SigningKey, Statement, Subject, sign
from ftpipeline.store.port import Blobs

DIVERGENCE = "ftpipeline:divergence-detection/v1"
ISOLATION = "ftpipeline:isolation-action/v1"
LIFT = "ftpipeline:quarantine-lift/v1"

PLANNED, EXECUTED = "planned", "executed"
_ID_LENGTH = 16
_LARGEST = 2.0**53 - 1


@dataclass(frozen=True)
class Signer:
    """Signs statements and keeps the envelopes."""

    blobs: Blobs
    key: SigningKey

    def put(self, statement: Statement) -> Digest:
        """Sign a statement, store it and return the digest of its receipt; the same statement gives the same one."""
        return self.blobs.put_bytes(sign(statement, self.key))


def incident_id(job_id: str, attempt: int, onset: int) -> str:
    """Return the name of a divergence: whoever finds it again, and however often, calls it the same."""
    return hex_of(of_json({"job_id": job_id, "attempt": attempt, "onset": onset}))[:_ID_LENGTH]


def divergence_statement(
    job_id: str, detection: Detection, head: Digest, cut: Mapping[str, Any], declared_by: str | None = None
) -> Statement:
    """Return the divergence_detection_receipt.

    Args:
        job_id: the job that diverged.
        detection: what the detector, or a person, found of the job's attempt.
        head: the last event of the job's chain.
        cut: the heads at the time, and the `root` of the concurrent_jobs_manifest that they give.
        declared_by: the person who says so; None where the detector does.
    """
    found = detection.to_json()
    onset = detection.onset_step or 0
    predicate = {
        "incident": incident_id(job_id, detection.attempt, onset),
        "job_id": job_id,
        "attempt": detection.attempt,
        "onset": onset,
        "last_good": detection.last_good_step,
        "detected": detection.detected_step,
        "stage": str(detection.stage),
        "evidence": [{name: _signable(value) for name, value in item.items()} for item in found["evidence"]],
        "declared_by": declared_by,
        "cut": dict(cut),
    }
    return Statement((Subject(job_id, head), Subject("cut", cut["root"])), DIVERGENCE, predicate)


def _signable(value: object) -> object:
    """Return a number of which readers of JSON would keep less than all as text."""
    return repr(value) if isinstance(value, float) and abs(value) > _LARGEST else value


def isolation_statement(
    incident: str, divergence: Digest, phase: str, cut: Mapping[str, Any], findings: Mapping[str, Any]
) -> Statement:
    """Return an isolation_action_receipt.

    Args:
        incident: name of the divergence.
        divergence: its divergence_detection_receipt.
        phase: `planned` before anything is done, `executed` after all of it.
        cut: the heads that the plan was made at, and the `root` of the concurrent_jobs_manifest that they give.
        findings: verdict, one finding and one action for every job of the cut, and what was done.
    """
    predicate = {"incident": incident, "phase": phase, "cut": dict(cut), **findings}
    return Statement((Subject("divergence", divergence), Subject("cut", cut["root"])), ISOLATION, predicate)


def lift_statement(artifact: Digest, reason: str, actor: str, marks: Sequence[Digest]) -> Statement:
    """Return the receipt that lifts the marks of an artifact.

    Args:
        artifact: the marked tree.
        reason: in a person's words.
        actor: stated, not authenticated.
        marks: receipts of the marks that stand.
    """
    predicate = {"artifact": artifact, "reason": reason, "actor": actor, "marks": list(marks)}
    return Statement((Subject("artifact", artifact),), LIFT, predicate)
