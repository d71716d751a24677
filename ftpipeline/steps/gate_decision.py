"""What the gate decides of two reports: pure, the same for the step, the command line and the checks.

A gain passes when it is at least its threshold and, if the threshold is above 0, at least what noise explains: the
half-width of the paired bootstrap where answers are at hand, and the width of the noise band where it was measured. A
gain that meets its threshold and not those is inconclusive. `docs/gate.md` has the rules for people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from ftpipeline.records import Verdict
from ftpipeline.steps.bootstrap import Interval, paired_interval
from ftpipeline.steps.gate_arithmetic import ROLES, Band, Thresholds, difference, exact, noise_band, plain, thresholds
from ftpipeline.steps.gate_floors import coarse_thresholds
from ftpipeline.steps.gate_reports import Reason, Report, mismatches, report_problems, uninformative_sets, unpaired
from ftpipeline.steps.paired import SCORED_BY, Pairs

UNMEASURED = "unmeasured"
"""What a gate record has for a noise band that nobody measured."""


@dataclass(frozen=True)
class GateDecision:
    """A verdict and what it rests on.

    Attributes:
        verdict: the verdict.
        reasons: everything that speaks against, not only the first; empty for a pass.
        differences: candidate minus production per role, exact decimal text; empty when nothing was compared.
        warnings: what weakens the verdict without changing it.
        intervals: paired bootstrap interval of each difference; empty where answers were not at hand.
        bands: noise band per role; empty where it was not measured.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    differences: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Reason, ...] = ()
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    bands: Mapping[str, Band] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON values."""
        bands = {
            role: {name: plain(value) for name, value in asdict(band).items()} for role, band in self.bands.items()
        }
        return {
            "verdict": self.verdict.value,
            "reasons": [asdict(reason) for reason in self.reasons],
            "warnings": [asdict(warning) for warning in self.warnings],
            "differences": dict(self.differences),
            "intervals": {role: asdict(interval) for role, interval in self.intervals.items()},
            "band": bands or UNMEASURED,
        }


def decide(
    candidate: Report,
    production: Report | None,
    gates: Mapping[str, Any],
    *,
    answers: Mapping[str, Pairs] | None = None,
    seed_scores: Mapping[str, Sequence[float]] | None = None,
) -> GateDecision:
    """Compare a candidate's report with production's.

    Args:
        candidate: evaluation report of the candidate (format: `gate_reports`).
        production: report of the pinned production artifact; None when there never was one.
        gates: the thresholds, inclusive: a gain or drop that equals its threshold passes.
        answers: both artifacts' answers by role; None where only the reports are at hand.
        seed_scores: by role, the scores of one manifest under several seeds; None where they were not measured.

    Raises:
        InputError: the gates or seed scores themselves cannot be used.
    """
    limits = thresholds(gates)
    bands = {role: noise_band(scores) for role, scores in (seed_scores or {}).items()}
    problems = report_problems("candidate", candidate)
    if production is None:
        problems = problems or uninformative_sets("candidate", candidate)
        return GateDecision(Verdict.REFUSED if problems else Verdict.FIRST_RELEASE, tuple(problems))
    if not problems and candidate["artifact"] == production.get("artifact"):
        return GateDecision(Verdict.ALREADY_PRODUCTION)
    problems += report_problems("production", production)
    problems = problems or mismatches(candidate, production) + uninformative_sets("production", production)
    if not problems and answers is not None:
        problems = unpaired(candidate, production, answers)
    if problems:
        return GateDecision(Verdict.REFUSED, tuple(problems))
    return _compare(candidate, production, limits, answers or {}, bands)


def _compare(
    candidate: Report,
    production: Report,
    limits: Thresholds,
    answers: Mapping[str, Pairs],
    bands: Mapping[str, Band],
) -> GateDecision:
    gained = {role: difference(candidate["metrics"][role], production["metrics"][role]) for role in ROLES}
    intervals = {role: paired_interval(answers[role], SCORED_BY[role]) for role in ROLES if role in answers}
    verdict, reasons = Verdict.PASS, _missed(gained, limits)
    if reasons:
        verdict = Verdict.FAIL
    elif limits.task > 0 and (reasons := _within_noise(gained["task"], intervals.get("task"), bands.get("task"))):
        verdict = Verdict.INCONCLUSIVE
    differences = {role: plain(gain) for role, gain in gained.items()}
    rows = {role: candidate["counts"][role]["n"] for role in ROLES}
    warnings = coarse_thresholds(limits, rows, bands)
    return GateDecision(verdict, tuple(reasons), differences, warnings, intervals, bands)


def _within_noise(gain: Decimal, interval: Interval | None, band: Band | None) -> list[Reason]:
    found = []
    if band is not None and gain < band.width:
        message = f"task: gain {plain(gain)} is below the noise band {plain(band.width)} of training again"
        found.append(Reason("gain_within_noise_band", message))
    if interval is not None and gain < exact(interval.half_width):
        width = plain(exact(interval.half_width))
        message = f"task: gain {plain(gain)} is below {width}, half the paired bootstrap interval; enlarge the eval set"
        found.append(Reason("gain_within_interval", message))
    return found


def _missed(gained: Mapping[str, Decimal], limits: Thresholds) -> list[Reason]:
    missed = []
    if gained["task"] < limits.task:
        message = f"task: gain {plain(gained['task'])} is below {plain(limits.task)}"
        missed.append(Reason("task_gain_below_threshold", message))
    for role, limit in (("regression", limits.regression), ("safety", limits.safety)):
        drop = gained[role].copy_negate()
        if drop > limit:
            missed.append(Reason(f"{role}_drop", f"{role}: drop {plain(drop)} is above {plain(limit)}"))
    return missed
