"""The detector's thresholds. Steps are optimizer steps; the defaults are those of the benchmark."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ftpipeline.errors import InputError


@dataclass(frozen=True)
class Envelope:
    """How far healthy jobs move from the reference model: the upper bound of the divergence, by step.

    Attributes:
        steps: ascending steps.
        upper: bound at each step, nats per token; linear between them, unknown outside of them.
    """

    steps: tuple[int, ...]
    upper: tuple[float, ...]

    @classmethod
    def of_runs(cls, runs: Iterable[Mapping[int, float]], *, slack: float = 1.5) -> "Envelope":
        """Return `slack` times the highest value of healthy runs at each step that all of them measured.

        Args:
            runs: divergence by step, one mapping a seed; at least two.
            slack: factor for what few seeds cannot show.

        Raises:
            InputError: fewer than two runs, or no step in common.
        """
        measured = list(runs)
        common = sorted(set.intersection(*map(set, measured))) if len(measured) > 1 else []
        if not common:
            raise InputError("an envelope needs two healthy runs with steps in common; measure more seeds")
        return cls(tuple(common), tuple(slack * max(run[step] for run in measured) for step in common))

    def at(self, step: int) -> float | None:
        """Return the bound at `step`; None before the first and after the last step that was measured."""
        if not self.steps or not self.steps[0] <= step <= self.steps[-1]:
            return None
        right = bisect_left(self.steps, step)
        if self.steps[right] == step:
            return self.upper[right]
        low, high = self.steps[right - 1], self.steps[right]
        share = (step - low) / (high - low)
        return self.upper[right - 1] + share * (self.upper[right] - self.upper[right - 1])


@dataclass(frozen=True)
class Config:
    """Thresholds of all rules.

    Attributes:
        window: steps whose median loss is the smoothed loss S, and the lag of the S it is compared with.
        warm_up: steps before S has a reference; a shorter attempt is never called healthy.
        memory: steps over which the noise of the loss is remembered.
        sigmas: how many standard errors of S a rise must exceed,
        wanders: how many typical changes of S over a window it must exceed,
        least_rise: and what share of the best S it must exceed.
        suspect_steps: length of such a rise for SUSPECT.
        confirm_steps: length for CONFIRMED, of a rise that keeps rising or has doubled the loss.
        settled_steps: length for CONFIRMED, of a smaller rise that stays level, as after a change of the data.
        doubled_steps: length for CONFIRMED, of a loss that has doubled and does not fall.
        spike_factor: ratio to the best S that counts as a spike.
        spike_run: spikes in a row for SUSPECT; twice as many during warm-up.
        runaway_sigmas: standard deviations above the best S, for a run of losses each higher than the one before.
        holding: share of its highest excess that a rise must keep; below it, it is recovering.
        grad_factor: ratio of the smoothed gradient norm to its usual value.
        zero_share: share of S below which a loss has collapsed.
        zero_run: such losses in a row, for SUSPECT and for CONFIRMED.
        val_rise: share of the best validation loss above which validation has risen.
        val_run: such validations in a row, for SUSPECT and for CONFIRMED.
        kl_envelope: bound on the divergence from the reference; None switches the rule off.
        kl_run: probes in a row outside of it, for SUSPECT and for CONFIRMED.
        score_drop: fall below the best evaluation score, in the unit of the score.
        score_run: such evaluations in a row, for SUSPECT and for CONFIRMED.
    """

    window: int = 20
    warm_up: int = 100
    memory: int = 100
    sigmas: float = 8.0
    wanders: float = 4.0
    least_rise: float = 0.03
    suspect_steps: int = 10
    confirm_steps: int = 60
    settled_steps: int = 120
    doubled_steps: int = 40
    spike_factor: float = 2.0
    spike_run: int = 5
    runaway_sigmas: float = 6.0
    holding: float = 0.5
    grad_factor: float = 5.0
    zero_share: float = 1e-3
    zero_run: Sequence[int] = (3, 10)
    val_rise: float = 0.05
    val_run: Sequence[int] = (3, 4)
    kl_envelope: Envelope | None = None
    kl_run: Sequence[int] = (2, 4)
    score_drop: float = 0.05
    score_run: Sequence[int] = (2, 3)
