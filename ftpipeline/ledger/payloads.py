"""What the payload of each kind of event holds at least; `docs/formats/ledger.md` says what it means.

A writer may add fields. A reader refuses an event that lacks one of these, however sound its digest is: who may insert
events may insert nonsense, and nonsense is no verdict.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from ftpipeline.schema import DigestText, Section


class Kind(StrEnum):
    """What can happen."""

    JOB_OPENED = "job_opened"
    METRICS = "metrics"
    EVALUATION = "evaluation"
    CHECKPOINT_SAVED = "checkpoint_saved"
    CHECKPOINT_CONSUMED = "checkpoint_consumed"
    ARTIFACT_CONSUMED = "artifact_consumed"
    DIVERGENCE_DETECTED = "divergence_detected"
    ISOLATION_ACTION = "isolation_action"
    JOB_CLOSED = "job_closed"


class Use(StrEnum):
    """What a job consumes a checkpoint for."""

    WARM_START = "warm_start"
    REFERENCE = "reference"
    TEACHER = "teacher"
    MERGE = "merge"
    RESUME = "resume"


class CloseReason(StrEnum):
    """Why an attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    HALTED = "halted"


class _Payload(Section):
    model_config = ConfigDict(extra="allow")


_Count = Annotated[int, Field(ge=0)]
_Position = Annotated[int, Field(ge=1)]


class _Resumed(_Payload):
    attempt: _Position
    step: _Count
    tree: DigestText


class _Maker(_Payload):
    job_id: str


class _Replayed(_Payload):
    job_id: str
    incident: str
    arm: str
    seed: _Count


class _Opened(_Payload):
    run_id: str
    pipeline: str
    week: str
    step_key: DigestText
    inputs: dict[str, DigestText]
    params_digest: DigestText
    family: DigestText | None
    checkpoint_steps: int | None
    keep: _Position | None = None
    manifest: DigestText | None = None
    resumed_from: _Resumed | None
    replay_of: _Replayed | None = None
    holder: str
    code: str


class _Metrics(_Payload):
    points: Annotated[list[dict[str, Any]], Field(min_length=1)]


class _Evaluation(_Payload):
    pass


class _Saved(_Payload):
    tree: DigestText


class _Consumed(_Payload):
    producer: str
    producer_attempt: _Position
    producer_step: _Count
    producer_event: DigestText
    tree: DigestText
    use: Annotated[Use, Field(strict=False)]
    at_step: _Count
    despite: list[DigestText] | None = None


class _Artifact(_Payload):
    name: str
    tree: DigestText
    maker: _Maker | None
    kind: Literal["weights", "data", "eval"]


class _Divergence(_Payload):
    receipt: DigestText
    stage: str
    onset: int | None
    last_good: int | None


class _Isolation(_Payload):
    receipt: DigestText
    action: str


class _Closed(_Payload):
    reason: Annotated[CloseReason, Field(strict=False)]
    output: DigestText | None
    error: str | None


_MODELS: Mapping[Kind, type[_Payload]] = {
    Kind.JOB_OPENED: _Opened,
    Kind.METRICS: _Metrics,
    Kind.EVALUATION: _Evaluation,
    Kind.CHECKPOINT_SAVED: _Saved,
    Kind.CHECKPOINT_CONSUMED: _Consumed,
    Kind.ARTIFACT_CONSUMED: _Artifact,
    Kind.DIVERGENCE_DETECTED: _Divergence,
    Kind.ISOLATION_ACTION: _Isolation,
    Kind.JOB_CLOSED: _Closed,
}


def problem_of(kind: Kind, payload: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the payload of an event; None if nothing is."""
    try:
        _MODELS[kind].model_validate(dict(payload))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return None
