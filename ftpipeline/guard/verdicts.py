"""What the detector answers."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum, StrEnum
from typing import Any


class Stage(StrEnum):
    """What is known of a job."""

    HEALTHY = "healthy"
    SUSPECT = "suspect"
    """Look at it; it may come back by itself."""
    CONFIRMED = "confirmed"
    """Isolate it. It stays confirmed for as long as the attempt lives."""
    INSUFFICIENT = "insufficient"
    """Too few steps to call it healthy; evidence may stand beside it."""


class Level(IntEnum):
    """How much one rule has seen."""

    QUIET = 0
    SUSPECT = 1
    CONFIRMED = 2

    @property
    def stage(self) -> Stage:
        """The stage of a job against which nothing else speaks."""
        return (Stage.HEALTHY, Stage.SUSPECT, Stage.CONFIRMED)[self]


class EvidenceKind(StrEnum):
    """What was seen."""

    NON_FINITE = "non_finite"
    LOSS_SPIKE = "loss_spike"
    SUSTAINED_RISE = "sustained_rise"
    GRAD_NORM_SPIKE = "grad_norm_spike"
    COLLAPSE_TO_ZERO = "collapse_to_zero"
    VALIDATION_RISE = "validation_rise"
    KL_ENVELOPE = "kl_envelope"
    EVALUATION_REGRESSION = "evaluation_regression"


@dataclass(frozen=True)
class Reading:
    """What a rule says at one point.

    Attributes:
        value: what was compared, in the unit of the metric; may be non-finite.
        limit: what it was compared with.
        onset: first step at which the disturbance may be seen.
        last_good: last step that is not in doubt; None when there is none.
    """

    kind: EvidenceKind
    metric: str
    level: Level
    value: float
    limit: float
    onset: int
    last_good: int | None


@dataclass(frozen=True)
class Evidence:
    """A rule that began to alarm, or that went from suspect to confirmed.

    Attributes:
        step: step at which the rule had seen enough.
        level: `suspect` or `confirmed`.
        event: the declared change that explains it and keeps it from being confirmed; None without one.
    """

    kind: EvidenceKind
    metric: str
    level: Stage
    step: int
    value: float
    limit: float
    onset: int
    last_good: int | None
    event: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON; a non-finite value is written as `{"non_finite": ...}` (contract C1)."""
        return asdict(self) | {"value": _number(self.value), "limit": _number(self.limit)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Evidence":
        """Return what `to_json` wrote."""
        fields = {
            name: value["non_finite"] if isinstance(value, Mapping) else value for name, value in document.items()
        }
        numbers = {name: float(fields[name]) for name in ("value", "limit")}
        named = {"kind": EvidenceKind(fields["kind"]), "level": Stage(fields["level"])}
        return cls(**{**fields, **numbers, **named})


@dataclass(frozen=True)
class Detection:
    """The verdict on what was seen of a job's current attempt.

    Attributes:
        last_good_step: last step that is not in doubt; the window of a trace begins after it.
        onset_step: first step at which the disturbance may be seen; None while nothing alarms.
        detected_step: step of the first alarm of the disturbance; None while nothing alarms.
        steps: steps from the first point of the attempt to the last.
        late_points: points that came after a later one and were checked for finiteness alone.
    """

    stage: Stage
    evidence: tuple[Evidence, ...]
    last_good_step: int | None
    onset_step: int | None
    detected_step: int | None
    attempt: int
    steps: int
    late_points: int

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON."""
        return asdict(self) | {"evidence": [item.to_json() for item in self.evidence]}


def _number(value: float) -> float | dict[str, str]:
    if math.isfinite(value):
        return value
    return {"non_finite": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
