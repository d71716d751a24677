"""Rules on the training loss: it stays above the best it has been, it spikes or runs away, it collapses to zero."""

from dataclasses import dataclass, field

from ftpipeline.guard.config import Config
from ftpipeline.guard.reference import Reference
from ftpipeline.guard.runs import Run
from ftpipeline.guard.verdicts import EvidenceKind, Level, Reading

_EARLY_SPIKES = 2  # spikes in a row that speak against a job too young for any other rule
_CLIMB = 5  # losses in a row, each an outlier and higher than the one before
_FALLING = 0.8  # share of its excess that S must keep over a window not to be falling
_GROWN = 1.25  # growth of the excess, once S has followed the loss, that makes a rise one that goes on
_SLOPE = 3  # a rise took a third of the time to its first quarter that it took from there to the whole
_FEW = 3  # least observations of a rise, however many steps lie between them


@dataclass
class LossRules:
    """What is remembered of a job's training loss: about a hundred numbers."""

    reference: Reference = field(default_factory=Reference)
    rise: Run = field(default_factory=Run)
    spike: Run = field(default_factory=Run)
    climb: Run = field(default_factory=Run)
    zero: Run = field(default_factory=Run)
    before_zero: float = 0.0
    previous: float = 0.0

    def update(self, step: int, loss: float, config: Config) -> list[Reading]:
        """Take one finite loss and return what each rule says."""
        reference, before = self.reference, self.reference.last
        expected = loss if reference.smoothed is None else reference.smoothed
        reference.push(step, loss, config)
        margin = reference.margin(config)
        readings = [
            self._rise(step, margin, config),
            self._spike(step, loss, before, config),
            self._zero(step, loss, expected, before, config),
        ]
        if self.rise.start is None:  # a rise must not teach the noise that it is noise
            reference.learn(step, loss, expected, config)
        reference.lower(step, margin, config)
        self.previous = loss
        return readings

    def restart(self, step: int) -> None:
        """Count from a declared change on."""
        self.reference.restart(step)
        self.rise, self.spike, self.climb = Run(), Run(), Run()

    def resume(self, step: int) -> "LossRules":
        """Return the rules as an attempt that begins at `step` continues them."""
        reference = self.reference
        return LossRules(reference=reference) if reference.resume(step) else LossRules()

    def _rise(self, step: int, margin: float, config: Config) -> Reading:
        reference, level = self.reference, Level.QUIET
        smoothed, lagged = reference.smoothed or 0.0, reference.lagged or 0.0
        excess = reference.excess(smoothed)
        self.rise.extend(reference.armed and excess > margin, step, excess, reference.last)
        recovering = excess < config.holding * reference.excess(lagged)
        length = self.rise.length(step)
        if length <= config.window:  # before that, S is still on its way
            self.rise.first = excess
        if length >= config.suspect_steps and self.rise.count >= _FEW and not recovering:
            level = Level.CONFIRMED if length >= self._needed(smoothed, lagged, config) else Level.SUSPECT
        onset, good = self._began(step, config)
        limit = smoothed - excess + margin
        return Reading(EvidenceKind.SUSTAINED_RISE, "loss", level, smoothed, limit, onset, good)

    def _began(self, step: int, config: Config) -> tuple[int, int | None]:
        """Return since when the loss may have been rising, and the last step before that is not in doubt.

        S crossed a quarter of its margin when it was last calm and all of it when the rise began; a straight line
        through both left the best a third of that time before the first. S itself is half a window late.
        """
        calm, began = self.reference.calm, self.rise.start
        if calm is None or began is None:
            return step, None
        slow = max(0, began - calm) // _SLOPE
        onset = min(step, calm - config.window // 2 - slow + 1)
        good = onset - config.window // 2 - slow - 1
        return max(1, onset), good if good >= 1 else None  # steps count from 1

    def _needed(self, smoothed: float, lagged: float, config: Config) -> int:
        """Return the steps after which a rise is confirmed: the milder it is, the more."""
        excess = self.reference.excess(smoothed)
        doubled = self.reference.is_multiple(smoothed, config.spike_factor)
        if doubled and excess >= _FALLING * self.reference.excess(lagged):
            return config.doubled_steps
        if doubled or excess >= _GROWN * self.rise.first:
            return config.confirm_steps
        return config.settled_steps

    def _spike(self, step: int, loss: float, before: int | None, config: Config) -> Reading:
        reference, excess = self.reference, self.reference.excess(loss)
        far = config.runaway_sigmas * reference.noise.sigma
        outlier = reference.armed and excess > far
        multiple = reference.is_multiple(loss, config.spike_factor)  # of a loss near zero, noise is a multiple too
        self.spike.extend(multiple and (outlier or not reference.armed), step, excess, before)
        self.climb.extend(outlier and (self.climb.start is None or loss > self.previous), step, excess, before)
        spiking = self.spike.count >= self._spikes_needed(step, config)
        spiking = spiking and excess >= config.holding * self.spike.peak
        climbing = self.climb.count >= _CLIMB
        run = self.climb if climbing else self.spike
        level = Level.SUSPECT if spiking or climbing else Level.QUIET
        best = reference.best or 0.0
        limit = best + far if climbing else config.spike_factor * best
        onset = step if run.start is None else run.start
        return Reading(EvidenceKind.LOSS_SPIKE, "loss", level, loss, limit, onset, run.before)

    def _spikes_needed(self, step: int, config: Config) -> int:
        if self.reference.armed:
            return config.spike_run
        return _EARLY_SPIKES if self.reference.age(step) < config.window else 2 * config.spike_run

    def _zero(self, step: int, loss: float, expected: float, before: int | None, config: Config) -> Reading:
        if self.zero.start is None:
            self.before_zero = expected
        limit = config.zero_share * self.before_zero
        self.zero.extend(before is not None and limit > 0 and abs(loss) <= limit, step, 0.0, before)
        onset = step if self.zero.start is None else self.zero.start
        level = self.zero.level(config.zero_run)
        return Reading(EvidenceKind.COLLAPSE_TO_ZERO, "loss", level, loss, limit, onset, self.zero.before)
