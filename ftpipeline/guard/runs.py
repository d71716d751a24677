"""Observations in a row."""

from collections.abc import Sequence
from dataclasses import dataclass

from ftpipeline.guard.verdicts import Level


@dataclass
class Run:
    """Observations in a row for which a rule holds.

    Attributes:
        start: step of the first one; None while there is none.
        before: step of the observation before it; None if the run began with the job.
        first: excess that the run began with.
        peak: highest excess.
    """

    start: int | None = None
    before: int | None = None
    count: int = 0
    first: float = 0.0
    peak: float = 0.0

    def extend(self, holds: bool, step: int, excess: float = 0.0, before: int | None = None) -> None:
        """Count an observation for which the rule holds; any other ends the run."""
        if not holds:
            self.start, self.before, self.count, self.first, self.peak = None, None, 0, 0.0, 0.0
            return
        if self.start is None:
            self.start, self.before, self.first, self.peak = step, before, excess, excess
        self.count += 1
        self.peak = max(self.peak, excess)

    def length(self, step: int) -> int:
        """Return how many steps the run spans at `step`."""
        return 0 if self.start is None else step - self.start + 1

    def level(self, needed: Sequence[int]) -> Level:
        """Return what the run amounts to, where `needed` is its length for SUSPECT and for CONFIRMED."""
        return Level((self.count >= needed[0]) + (self.count >= needed[1]))
