"""When a training is ended because it cannot become good: arithmetic over what was measured, and nothing else.

Law: the checks hold no state but what was measured. A run that goes on from a checkpoint replays the points and
evaluations up to it, and from there on answers as the run that was never stopped.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, stdev

from ftpipeline.errors import (
    GradientSpikeError,
    LossExplosionError,
    NoLearningError,
    NonFiniteError,
    OverfittingError,
    ZeroLossError,
)
from ftpipeline.schema import Checks

NORM_WINDOW = 100
"""Gradient norms whose median the next one is compared with."""

NORM_START = 20
"""Gradient norms that must stand before one can be a spike."""

LOSS_WINDOW = 10
"""Losses whose median must be beyond the limit for an explosion; one odd batch is none."""

EXPLOSION_FACTOR = 3.0
"""Times the first loss, or one nat where it was less, that no sound training stays beyond."""

LEARNING_WINDOW = 20
"""Most losses at either end of the declared steps that are compared for learning."""

LEARNED_SHARE, LEARNED_DEVIATIONS = 0.02, 2.0
"""A fall counts as learning beyond this share of the first losses and so many of its own standard errors."""

OVERFITTING_SHARE, OVERFITTING_NATS = 0.05, 0.02
"""A validation loss has risen once it is beyond the best one by both together; less is noise."""

LOWER_RATE = "lower the learning rate or look for broken rows"


@dataclass(frozen=True)
class Evaluated:
    """One evaluation.

    Attributes:
        epoch: passes over the training rows so far.
        val_loss: mean loss of the validation rows.
        train_loss: mean loss of the training steps since the evaluation before.
    """

    epoch: float
    val_loss: float
    train_loss: float


class FailFast:
    """The checks of one training; told of every optimizer step and evaluation in order, they raise at the first fault.

    Args:
        checks: the declared limits.
    """

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._losses: list[float] = []
        self._norms: list[float] = []
        self._evaluations: list[Evaluated] = []
        self._evaluated_steps = 0

    def step(self, step: int, loss: float, grad_norm: float, learning_rate: float) -> None:
        """Take what one optimizer step measured.

        Args:
            step: its number, from 1.
            loss: mean loss of its rows before the update.
            grad_norm: norm of the whole gradient before it was clipped.
            learning_rate: of the update.

        Raises:
            NonFiniteError: one of them is not finite.
            ZeroLossError: the loss is exactly zero.
            GradientSpikeError: the gradient norm is far beyond what it was.
            LossExplosionError: the losses are far beyond the first one.
            NoLearningError: this is the declared step, and the loss has not fallen.
        """
        for name, value in (("loss", loss), ("grad_norm", grad_norm), ("learning_rate", learning_rate)):
            require_finite(name, value, step)
        if loss == 0.0:
            raise ZeroLossError(
                f"loss is exactly 0 at step {step}; check that the rows have labels, or train for fewer steps",
                evidence("zero_loss", step, loss, 0.0),
            )
        self._check_spike(step, grad_norm)
        self._losses.append(loss)
        self._norms.append(grad_norm)
        self._check_explosion(step)
        if step == self._checks.no_learning_steps:
            self._check_learning(step)

    def evaluation(self, step: int, epoch: float, val_loss: float) -> None:
        """Take an evaluation after `step` optimizer steps.

        Raises:
            NonFiniteError: the validation loss is not finite.
            OverfittingError: it keeps rising after the first epoch while the training loss falls.
        """
        require_finite("validation loss", val_loss, step)
        since = self._losses[self._evaluated_steps :]
        self._evaluated_steps = len(self._losses)
        self._evaluations.append(Evaluated(epoch, val_loss, fmean(since) if since else math.inf))
        self._check_overfitting(step)

    def _check_spike(self, step: int, grad_norm: float) -> None:
        """Compare with the recent norms and with the first ones: a norm may come back up to where it began."""
        if len(self._norms) < NORM_START:
            return
        usual = max(median(self._norms[-NORM_WINDOW:]), median(self._norms[:NORM_START]))
        limit = self._checks.grad_norm_factor * usual
        if grad_norm > limit:
            raise GradientSpikeError(
                f"grad_norm is {grad_norm:.4g} at step {step}, beyond {self._checks.grad_norm_factor:g} times its "
                f"median {usual:.4g}; {LOWER_RATE}",
                evidence("gradient_spike", step, grad_norm, limit),
            )

    def _check_explosion(self, step: int) -> None:
        if len(self._losses) <= LOSS_WINDOW:
            return
        recent = median(self._losses[-LOSS_WINDOW:])
        limit = EXPLOSION_FACTOR * max(self._losses[0], 1.0)
        if recent > limit:
            raise LossExplosionError(
                f"loss is {recent:.4g} in the median of {LOSS_WINDOW} steps at step {step}, beyond {limit:.4g}, "
                f"{EXPLOSION_FACTOR:g} times where it began; {LOWER_RATE}",
                evidence("loss_explosion", step, recent, limit),
            )

    def _check_learning(self, step: int) -> None:
        window = max(1, min(LEARNING_WINDOW, len(self._losses) // 3))
        first, last = self._losses[:window], self._losses[-window:]
        fall, limit = fmean(first) - fmean(last), _least_fall(first, last)
        if not fall > limit:
            raise NoLearningError(
                f"loss fell by {fall:.4g} within {step} steps, and a fall of {limit:.4g} may be noise; "
                "raise the learning rate, or check that rows and labels belong together",
                evidence("no_learning", step, fall, limit),
            )

    def _check_overfitting(self, step: int) -> None:
        count = self._checks.overfitting_evaluations
        late = [evaluated for evaluated in self._evaluations if evaluated.epoch >= 1.0]
        if count is None or len(late) < max(2, count):
            return
        window = late[-max(2, count) :]
        best = min(evaluated.val_loss for evaluated in self._evaluations)
        limit = best * (1 + OVERFITTING_SHARE) + OVERFITTING_NATS
        if _rises([e.val_loss for e in window]) and window[-1].val_loss > limit and _falls(window):
            raise OverfittingError(
                f"validation loss is {window[-1].val_loss:.4g} at step {step} after {len(window)} evaluations in a "
                f"row that rose, its best is {best:.4g}, while the training loss falls; train for fewer epochs or on "
                "more rows",
                evidence("overfitting", step, window[-1].val_loss, limit),
            )


def require_finite(name: str, value: float, step: int) -> None:
    """Return if `value` is a finite number.

    Raises:
        NonFiniteError: it is NaN or infinite.
    """
    if not math.isfinite(value):
        raise NonFiniteError(f"{name} is {value} at step {step}; {LOWER_RATE}", evidence("non_finite", step, value))


def evidence(kind: str, step: int, value: float, limit: float | None = None) -> dict[str, object]:
    """Return what a check saw as JSON values; a number that is not finite has no such form and is written as text."""
    seen: dict[str, object] = {"kind": kind, "step": step, "value": value if math.isfinite(value) else str(value)}
    return seen if limit is None else seen | {"limit": limit}


def _least_fall(first: Sequence[float], last: Sequence[float]) -> float:
    """Return the fall between two equally long windows that noise alone hardly makes."""
    spread = math.hypot(stdev(first), stdev(last)) / math.sqrt(len(first)) if len(first) > 1 else 0.0
    return max(LEARNED_SHARE * fmean(first), LEARNED_DEVIATIONS * spread)


def _rises(values: Sequence[float]) -> bool:
    return all(later > earlier for earlier, later in pairwise(values))


def _falls(window: Sequence[Evaluated]) -> bool:
    return window[-1].train_loss < window[0].train_loss
