"""What a job's training loss is compared with: the best it has been, and how far chance moves it from there.

S is the median loss of the last 20 steps. It is compared with the best S of at least 20 steps ago, so that a slow rise
cannot pull its own reference up. How far S may lie above it follows from the noise of this very job.
"""

import math
from dataclasses import dataclass, field

from ftpipeline.guard.config import Config
from ftpipeline.guard.smooth import NORMAL_MAD, Scale, Trailing

_EARLY_OBSERVATIONS = 3  # fewest losses whose median may serve as a reference
_CALM = 0.25  # share of the margin within which S cannot be told from its best
_QUICKEST = 0.2  # most that one observation may weigh in the noise, however many steps it stands for


@dataclass
class Reference:
    """The smoothed loss S, the best it has been, and the noise of both.

    Attributes:
        since: step from which the best counts: the first one, or that of the last declared change.
        last: step of the last loss.
        armed: whether the warm-up is over.
        smoothed: S at the last loss.
        lagged: S a window ago.
        best: lowest S since `since`, a window ago or earlier; None until there is one.
        best_step: step at which the best was found.
        calm: last step at which S could not be told from its best.
    """

    window: Trailing = field(default_factory=Trailing)
    history: Trailing = field(default_factory=Trailing)
    noise: Scale = field(default_factory=Scale)
    wander: Scale = field(default_factory=Scale)
    trend: float = 0.0
    since: int | None = None
    last: int | None = None
    armed: bool = False
    smoothed: float | None = None
    lagged: float | None = None
    best: float | None = None
    best_step: int | None = None
    calm: int | None = None

    def push(self, step: int, loss: float, config: Config) -> None:
        """Smooth one more loss; the noise and the best follow with `learn` and `lower`."""
        self.since = step if self.since is None else self.since
        self.window.push(step, loss, config.window)
        self.smoothed = self.window.median()
        self.lagged = self.history.oldest() if self.history.rows else self.smoothed
        self.history.push(step, self.smoothed, config.window)
        if not self.armed and self.age(step) >= config.warm_up:
            self._arm(step, self.smoothed, config)

    def age(self, step: int) -> int:
        """Return how many steps the reference has counted at `step`."""
        return 0 if self.since is None else step - self.since

    def excess(self, value: float) -> float:
        """Return how far `value` lies above the best; nothing lies above a best that is not known."""
        return 0.0 if self.best is None else value - self.best

    def is_multiple(self, value: float, factor: float) -> bool:
        """Tell whether `value` is at least `factor` times the best; of a loss that is not positive, nothing is."""
        return self.best is not None and self.best > 0 and value >= factor * self.best

    def margin(self, config: Config) -> float:
        """Return how far S may lie above its best."""
        if self.best is None:
            return 0.0
        by_noise = max(config.sigmas * self.standard_error(), config.wanders * self.wander.sigma)
        return max(by_noise, config.least_rise * abs(self.best))

    def standard_error(self) -> float:
        """Return how far S, a median, is from what it estimates by chance; zero while nothing is known."""
        return NORMAL_MAD * self.noise.sigma / math.sqrt(max(1, len(self.window.rows)))

    def learn(self, step: int, loss: float, expected: float, config: Config) -> None:
        """Learn the noise from a loss and from the change of S over a window; `push` comes first."""
        assert self.smoothed is not None
        assert self.lagged is not None
        weight = min((step - self.last) / config.memory, _QUICKEST) if self.last is not None else 1.0
        self.noise.push(abs(loss - expected), weight, config.window)
        change = self.smoothed - self.lagged
        self.wander.push(abs(change - self.trend), weight, 2 * config.window)
        self.trend += max(1 / self.wander.count, weight) * (change - self.trend)

    def lower(self, step: int, margin: float, config: Config) -> None:
        """Lower the best to S as it was a window ago, and note whether S is calm."""
        if self.best is not None and self.smoothed is not None and self.excess(self.smoothed) <= _CALM * margin:
            self.calm = step
        young = 2 * config.window  # before that, S a window ago was not yet the median of a whole one
        candidate = self.lagged if self.age(step) >= young else self._early()
        first = self.best_step is None or (self.age(self.best_step) < young <= self.age(step))
        if candidate is not None and (first or self.excess(candidate) < 0):
            self.best, self.best_step = candidate, step
        self.last = step

    def restart(self, step: int) -> None:
        """Count from a declared change on; what is known of the noise stays."""
        self.since, self.armed, self.best, self.best_step = step, False, None, None

    def resume(self, step: int) -> bool:
        """Begin an attempt at `step`: keep the best if it lies before, and tell whether it does."""
        if self.best_step is None or step <= self.best_step:
            return False
        self.window, self.history, self.smoothed, self.lagged = Trailing(), Trailing(), None, None
        self.last, self.calm = None, step
        return True

    def _early(self) -> float | None:
        return self.smoothed if len(self.window.rows) >= _EARLY_OBSERVATIONS else None

    def _arm(self, step: int, smoothed: float, config: Config) -> None:
        """End the warm-up: losses may rise while the learning rate does, so the reference is what they have come to."""
        self.armed = True
        if not self.is_multiple(smoothed, config.spike_factor):
            self.best, self.best_step = smoothed, step
