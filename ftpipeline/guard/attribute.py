"""From replays to a cause. A ledger proves that a job was exposed; only running it without the suspect tells more.

Every replay starts at the job's last clean checkpoint; under one seed, those of all arms see the same data in the same
order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ftpipeline.errors import InputError
from ftpipeline.guard.trace import Exposure

LEAST_SEEDS = 3
"""Replays of an arm below which nothing is said of it."""


class Arm(StrEnum):
    """What a replay changes."""

    AS_RECORDED = "as_recorded"
    CLEAN_PRODUCER = "clean_producer"
    """The suspect input is replaced by its producer's last clean checkpoint."""
    WITHOUT_INPUT = "without_input"
    """The suspect input is left out."""
    OWN_CHANGE = "own_change"
    """The job's own learning rate or data window is changed."""


class Cause(StrEnum):
    """What is known of the cause of a divergence."""

    NOT_EXPOSED = "NOT_EXPOSED"
    EXPOSED_UNTESTED = "EXPOSED_UNTESTED"
    NOT_REPRODUCED = "NOT_REPRODUCED"
    INTERNAL_SUPPORTED = "INTERNAL_SUPPORTED"
    EXTERNAL_SUPPORTED = "EXTERNAL_SUPPORTED"
    BOTH = "BOTH"


@dataclass(frozen=True)
class Outcome:
    """Replays of one arm: `diverged` of `runs` seeds diverged again."""

    diverged: int
    runs: int

    def __post_init__(self) -> None:
        if not 0 <= self.diverged <= self.runs:
            raise InputError(f"{self.diverged} of {self.runs} replays cannot have diverged; count them again")

    @property
    def mostly(self) -> bool:
        """Tell whether more than half of the seeds diverged."""
        return 2 * self.diverged > self.runs


@dataclass(frozen=True)
class Attribution:
    """A cause, and never without the counts that speak for it."""

    cause: Cause
    outcomes: Mapping[Arm, Outcome]


def attribute(exposure: Exposure, outcomes: Mapping[Arm, Outcome]) -> Attribution:
    """Return what replays say of a divergence.

    It is external if it comes back as recorded and not once without the suspect input; internal if it comes back
    either way; both if leaving the suspect out helps some seeds only, or if a change of the job's own cures it as well.

    Args:
        exposure: what the trace says.
        outcomes: replays by arm; an arm of fewer than three seeds is reported and not counted.
    """
    counted = {arm: outcome for arm, outcome in outcomes.items() if outcome.runs >= LEAST_SEEDS}
    return Attribution(_cause(exposure, counted), dict(outcomes))


def _cause(exposure: Exposure, outcomes: Mapping[Arm, Outcome]) -> Cause:
    recorded = outcomes.get(Arm.AS_RECORDED)
    without = [outcomes[arm] for arm in (Arm.CLEAN_PRODUCER, Arm.WITHOUT_INPUT) if arm in outcomes]
    if recorded is not None and not recorded.mostly:
        return Cause.NOT_REPRODUCED
    if exposure is Exposure.NOT_EXPOSED:
        return Cause.NOT_EXPOSED
    if recorded is None or not without:
        return Cause.EXPOSED_UNTESTED
    if all(outcome.mostly for outcome in without):
        return Cause.INTERNAL_SUPPORTED
    own = outcomes.get(Arm.OWN_CHANGE)
    if any(outcome.diverged for outcome in without) or (own is not None and not own.diverged):
        return Cause.BOTH
    return Cause.EXTERNAL_SUPPORTED
