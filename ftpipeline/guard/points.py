"""What the detector looks at: measured points of one job, and changes of its training that somebody declared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured at one optimizer step. None means not measured; a non-finite float is a measurement.

    Attributes:
        step: optimizer step of the attempt.
        attempt: which start of the job; the highest one counts.
        loss: training loss of the step.
        grad_norm: norm of the gradient before clipping.
        val_loss: loss on the validation set.
        kl: divergence from the reference model on a fixed probe set, nats per token.
        scores: evaluation scores by name, the higher the better.
    """

    step: int
    attempt: int = 1
    loss: float | None = None
    grad_norm: float | None = None
    val_loss: float | None = None
    kl: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


class EventKind(StrEnum):
    """Changes that move the loss of a healthy job."""

    LR_RESTART = "lr_restart"
    MIXTURE_SWITCH = "mixture_switch"
    ACCUMULATION_CHANGE = "accumulation_change"


@dataclass(frozen=True, slots=True)
class Event:
    """A declared change, in force from `step` on; `attempt` None means in every attempt that reaches the step."""

    step: int
    kind: EventKind
    attempt: int | None = None
