"""A median over the last steps, whether every step is logged or every tenth."""

import math
from dataclasses import dataclass, field

MIN_OBSERVATIONS = 5  # a window of 20 steps holds 2 observations of a job that logs every tenth

NORMAL_MAD = math.sqrt(math.pi / 2)
"""Standard deviation of a normal distribution over its mean absolute deviation."""


@dataclass
class Trailing:
    """Observations of the last `window` steps, but at least five."""

    rows: list[tuple[int, float]] = field(default_factory=list)

    def push(self, step: int, value: float, window: int) -> None:
        """Add an observation and forget those that left the window."""
        self.rows.append((step, value))
        while len(self.rows) > MIN_OBSERVATIONS and self.rows[0][0] <= step - window:
            del self.rows[0]

    def median(self) -> float:
        """Return the median; at least one observation is needed."""
        ordered = sorted(value for _, value in self.rows)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

    def oldest(self) -> float:
        """Return the oldest value that is remembered; at least one observation is needed."""
        return self.rows[0][1]


@dataclass
class Scale:
    """A running mean absolute deviation that a few outliers cannot move: each counts as four deviations at most."""

    deviation: float = 0.0
    count: int = 0

    def push(self, distance: float, weight: float, clipped_after: int) -> None:
        """Add a distance; the first `clipped_after` ones are taken as they are."""
        self.count += 1
        if self.count > clipped_after:
            distance = min(distance, 4 * self.deviation)
        self.deviation += max(1 / self.count, weight) * (distance - self.deviation)

    @property
    def sigma(self) -> float:
        """The standard deviation that a normal distribution of this spread has."""
        return NORMAL_MAD * self.deviation
