"""How fine a threshold may be: finer than one example, or than training again under another seed, it decides nothing.

The rule, on fractions: a demanded gain above 0 must be at least one example's weight, 1/n of the set, and, where it was
measured, at least the width of the noise band. A demanded gain of 0 asks only that nothing gets worse. An allowed drop
of 0 means no drop; one between 0 and these floors is kept, with a warning, because it is no easier to pass for it.
"""

from collections.abc import Mapping
from decimal import Decimal

from ftpipeline.errors import ThresholdError
from ftpipeline.steps.gate_arithmetic import Band, Thresholds, one_of, plain
from ftpipeline.steps.gate_reports import Reason


def check_thresholds(limits: Thresholds, rows: Mapping[str, int], bands: Mapping[str, Band]) -> tuple[Reason, ...]:
    """Refuse, before anything is trained, a gain that no evaluation could tell from noise.

    Args:
        limits: the thresholds.
        rows: rows of each role's eval set.
        bands: noise band by role; empty where it was not measured.

    Returns:
        What is to be warned of: drops that are finer than their floors.

    Raises:
        ThresholdError: the demanded gain on the task set is above 0 and below a floor; the message has the numbers.
    """
    found = {role: _coarse(role, limit, rows[role], bands.get(role)) for role, limit in limits.by_role().items()}
    if gain := found.pop("task"):
        said = "; ".join(reason.message for reason in gain)
        raise ThresholdError(
            f"gates.task_min_gain_vs_prod: {said}; raise it, enlarge the eval set, or write 0.0 to ask for no gain"
        )
    return tuple(reason for reasons in found.values() for reason in reasons)


def coarse_thresholds(limits: Thresholds, rows: Mapping[str, int], bands: Mapping[str, Band]) -> tuple[Reason, ...]:
    """Return every threshold above 0 that is finer than a floor, the gain among them, with the numbers."""
    return tuple(
        reason
        for role, limit in limits.by_role().items()
        for reason in _coarse(role, limit, rows[role], bands.get(role))
    )


def _coarse(role: str, limit: Decimal, rows: int, band: Band | None) -> list[Reason]:
    found: list[Reason] = []
    if limit == 0:  # it asks for no resolution; between 0 and a floor, noise decides
        return found
    if limit * rows < 1:
        message = f"{role}: threshold {plain(limit)} is below one example of n = {rows} ({one_of(rows)})"
        found.append(Reason("threshold_below_one_example", message))
    if band is not None and limit < band.width:
        width = f"{plain(band.width)} (seeds spread over {plain(band.spread)})"
        message = f"{role}: threshold {plain(limit)} is below the noise band {width}"
        found.append(Reason("threshold_below_noise_band", message))
    return found
