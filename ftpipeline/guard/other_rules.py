"""Rules on what is measured beside the training loss: gradient norm, validation, reference model, evaluation scores."""

import math
from dataclasses import dataclass, field
from statistics import median

from ftpipeline.guard.config import Config
from ftpipeline.guard.runs import Run
from ftpipeline.guard.smooth import Trailing
from ftpipeline.guard.verdicts import EvidenceKind, Level, Reading

_VALIDATIONS = 8  # bends from which the noise of the validation loss is taken
_NEIGHBOURS = 2
_VALIDATION_SIGMAS = 3.0
_NORMAL_MEDIAN = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
_USUAL_GROWTH = 2.0  # one smoothed gradient norm counts as at most this multiple of the usual one


@dataclass
class GradNormRule:
    """The smoothed gradient norm is a multiple of its usual value: a reason to suspect a job, never to confirm it."""

    window: Trailing = field(default_factory=Trailing)
    usual: float | None = None
    since: int | None = None
    last: int | None = None
    run: Run = field(default_factory=Run)

    def update(self, step: int, norm: float, config: Config) -> Reading:
        """Take one finite gradient norm."""
        self.since = step if self.since is None else self.since
        self.window.push(step, norm, config.window)
        smoothed = self.window.median()
        usual = smoothed if self.usual is None else self.usual
        armed = step - self.since >= config.warm_up
        self.run.extend(armed and smoothed > config.grad_factor * usual, step, 0.0, self.last)
        weight = min((step - self.last) / config.memory, 1.0) if self.last is not None else 1.0
        self.usual = usual + weight * (min(smoothed, _USUAL_GROWTH * usual) - usual)
        self.last = step
        level = Level.SUSPECT if self.run.length(step) >= config.suspect_steps else Level.QUIET
        onset = step if self.run.start is None else self.run.start
        limit = config.grad_factor * usual
        return Reading(EvidenceKind.GRAD_NORM_SPIKE, "grad_norm", level, smoothed, limit, onset, self.run.before)


@dataclass
class ValidationRule:
    """Validation loss rises above its best while the smoothed training loss does not rise above what it was then.

    Attributes:
        best: the lowest validation loss, found at `best_step`; `before_best` is the step of the validation before it.
        train_at_best: the smoothed training loss at that step.
        recent: the last two values, the newest last.
        bends: how far each of the last validations lay from the line through its neighbours: their noise.
    """

    best: float | None = None
    best_step: int | None = None
    before_best: int | None = None
    train_at_best: float | None = None
    last: int | None = None
    recent: list[float] = field(default_factory=list)
    bends: list[float] = field(default_factory=list)
    run: Run = field(default_factory=Run)

    def update(self, step: int, value: float, train: float | None, tolerance: float, config: Config) -> Reading:
        """Take one finite validation loss.

        Args:
            step: step of the validation.
            value: the validation loss.
            train: smoothed training loss at that step; None if none was measured, which counts as not rising.
            tolerance: how far the smoothed training loss moves by chance.
            config: thresholds.
        """
        if self.best is None or value <= self.best:
            self.best, self.best_step, self.before_best, self.train_at_best = value, step, self.last, train
        limit = self.best + max(config.val_rise * abs(self.best), _VALIDATION_SIGMAS * self._sigma())
        calm = train is None or self.train_at_best is None or train <= self.train_at_best + tolerance
        self.run.extend(value > limit and calm, step)
        if len(self.recent) == _NEIGHBOURS and value <= limit:
            older, newer = self.recent
            self.bends = [*self.bends, abs(value - 2 * newer + older)][-_VALIDATIONS:]
        self.recent, self.last = [*self.recent, value][-_NEIGHBOURS:], step
        level = self.run.level(config.val_run)
        onset = step if self.best_step is None else min(step, self.best_step + 1)
        return Reading(EvidenceKind.VALIDATION_RISE, "val_loss", level, value, limit, onset, self.before_best)

    def _sigma(self) -> float:
        """Return the standard deviation of one validation; a bend is made of three."""
        return median(self.bends) * _NORMAL_MEDIAN / math.sqrt(6) if self.bends else 0.0


@dataclass
class DivergenceRule:
    """The divergence from the reference model leaves the envelope of healthy seeds at the same step."""

    last_inside: int | None = None
    last: int | None = None
    run: Run = field(default_factory=Run)

    def update(self, step: int, value: float, config: Config) -> Reading | None:
        """Take one finite probe; None where no envelope is known, because then nothing can be said."""
        self.last = step
        limit = None if config.kl_envelope is None else config.kl_envelope.at(step)
        if limit is None:
            return None
        self.run.extend(value > limit, step, 0.0, self.last_inside)
        if value <= limit:
            self.last_inside = step
        onset = step if self.run.start is None else self.run.start
        level = self.run.level(config.kl_run)
        return Reading(EvidenceKind.KL_ENVELOPE, "kl", level, value, limit, onset, self.last_inside)


@dataclass
class ScoreRule:
    """An evaluation score falls below its best: the job forgets what it could."""

    best: float | None = None
    best_step: int | None = None
    last: int | None = None
    run: Run = field(default_factory=Run)

    def update(self, step: int, metric: str, value: float, config: Config) -> Reading:
        """Take one finite score, the higher the better."""
        if self.best is None or value >= self.best:
            self.best, self.best_step = value, step
        self.last = step
        limit = self.best - config.score_drop
        self.run.extend(value < limit, step)
        level = self.run.level(config.score_run)
        onset = step if self.best_step is None else min(step, self.best_step + 1)
        return Reading(EvidenceKind.EVALUATION_REGRESSION, metric, level, value, limit, onset, self.best_step)
