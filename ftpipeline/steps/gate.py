"""gate: is the candidate at least as good as what is in production, by the thresholds of its manifest?

The candidate is compared with the production model that was pinned when the run began, never with the base model, and
on the exported artifact. A verdict against is a normal outcome: the step writes it down and does not raise.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest, canonical_json, parse
from ftpipeline.errors import GateRecordError
from ftpipeline.records import Facts, Verdict, step
from ftpipeline.steps.gate_arithmetic import ROLES, Thresholds, difference, plain, seed_band, thresholds
from ftpipeline.steps.gate_reports import Reason, Report, mismatches, report_problems, uninformative_sets

GATE_RECORD_TYPE = "ftpipeline/gate/v1"


@dataclass(frozen=True)
class GateDecision:
    """A verdict and what it rests on.

    Attributes:
        verdict: the verdict.
        reasons: everything that speaks against, not only the first; empty for a pass.
        differences: candidate minus production per role, exact decimal text; empty when nothing was compared.
        warnings: what weakens the verdict without changing it.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    differences: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Reason, ...] = ()


def decide(
    candidate: Report, production: Report | None, gates: Mapping[str, Any], *, seed_scores: Sequence[float] = ()
) -> GateDecision:
    """Compare a candidate's report with production's.

    Args:
        candidate: evaluation report of the candidate (format: `gate_reports`).
        production: report of the pinned production artifact; None when there never was one.
        gates: the thresholds, inclusive: a gain or drop that equals its threshold passes.
        seed_scores: task scores of one manifest under several seeds; their spread is the noise band.

    Raises:
        InputError: the gates or seed scores themselves cannot be used.
    """
    limits, band = thresholds(gates), seed_band(seed_scores)
    problems = report_problems("candidate", candidate)
    if production is None:
        problems = problems or uninformative_sets("candidate", candidate)
        return GateDecision(Verdict.REFUSED if problems else Verdict.FIRST_RELEASE, tuple(problems))
    if not problems and candidate["artifact"] == production.get("artifact"):
        return GateDecision(Verdict.ALREADY_PRODUCTION)
    problems += report_problems("production", production)
    problems = problems or mismatches(candidate, production) + uninformative_sets("production", production)
    if problems:
        return GateDecision(Verdict.REFUSED, tuple(problems))
    return _compare(candidate, production, limits, band)


def _compare(candidate: Report, production: Report, limits: Thresholds, band: Decimal) -> GateDecision:
    gained = {role: difference(candidate["metrics"][role], production["metrics"][role]) for role in ROLES}
    verdict, reasons = Verdict.PASS, _missed(gained, limits)
    if reasons:
        verdict = Verdict.FAIL
    elif gained["task"] < band:
        verdict = Verdict.INCONCLUSIVE
        message = f"task: gain {plain(gained['task'])} is below the seed band {plain(band)}"
        reasons.append(Reason("gain_within_seed_band", message))
    differences = {role: plain(gain) for role, gain in gained.items()}
    return GateDecision(verdict, tuple(reasons), differences, _coarse_thresholds(candidate, limits))


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


def _coarse_thresholds(report: Report, limits: Thresholds) -> tuple[Reason, ...]:
    warnings = []
    for role, limit in zip(ROLES, (limits.task, limits.regression, limits.safety), strict=True):
        n = report["counts"][role]["n"]
        if 0 < limit < Decimal(1) / n:  # a threshold of 0 asks for no resolution; between 0 and 1/n single rows decide
            message = f"{role}: threshold {plain(limit)} is below one example of n = {n}"
            warnings.append(Reason("threshold_below_one_example", message))
    return tuple(warnings)


@step("gate", code_version="1")
def gate(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Join two evaluation reports into a gate record, `gate.json`.

    Args:
        inputs: `report`, a folder with `candidate.json` and, when production is pinned, `production.json`.
        params: `gates`; the digests `manifest` and `candidate`; `production` `{"digest", "generation"}` as pinned;
            optionally `seed_scores`.
        out: receives `gate.json`, canonical JSON.

    Raises:
        GateRecordError: a report is unreadable or about another artifact.
        InputError: the gates or seed scores cannot be used.
    """
    artifact, pinned = parse(params["candidate"]), params["production"]
    expected = None if pinned["digest"] is None else parse(pinned["digest"])
    candidate = _read(inputs["report"] / "candidate.json", artifact)
    production = _production(inputs["report"], candidate, expected)
    if expected is not None and production is None:
        missing = Reason("production_report_missing", f"production {expected} is pinned but was not evaluated")
        decision = GateDecision(Verdict.REFUSED, (missing,))
    else:
        decision = decide(candidate, production, params["gates"], seed_scores=params.get("seed_scores", ()))
    facts = _facts(decision, candidate, production)
    record = {
        "type": GATE_RECORD_TYPE,
        "candidate": artifact,
        "manifest": parse(params["manifest"]),
        "production": {"digest": expected, "generation": pinned["generation"]},
        "eval_sets": _recordable(candidate.get("eval_sets")),
        "scorer": _recordable(candidate.get("scorer")),
        "gates": params["gates"],
        **facts,
    }
    (out / "gate.json").write_bytes(canonical_json(record))
    return facts


def _production(folder: Path, candidate: Report, expected: Digest | None) -> Report | None:
    path = folder / "production.json"
    if path.exists():
        if expected is None:
            raise GateRecordError("the report has a production.json but no production is pinned; run the week again")
        return _read(path, expected)
    return candidate if candidate["artifact"] == expected else None


def _read(path: Path, artifact: Digest) -> Report:
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise GateRecordError(f"report {path.name} cannot be read ({error}); evaluate {artifact} again") from error
    about = report.get("artifact") if isinstance(report, dict) else None
    if about != artifact:
        raise GateRecordError(f"report {path.name} is about {about}, not about {artifact}; evaluate that artifact")
    return dict(report)


def _facts(decision: GateDecision, candidate: Report, production: Report | None) -> Facts:
    return {
        "verdict": decision.verdict.value,
        "reasons": [asdict(reason) for reason in decision.reasons],
        "warnings": [asdict(warning) for warning in decision.warnings],
        "differences": dict(decision.differences),
        "metrics": {
            "candidate": _recordable(candidate.get("metrics")),
            "production": None if production is None else _recordable(production.get("metrics")),
        },
    }


def _recordable(value: object) -> object:
    """Return a JSON value that a strict reader accepts: a refused NaN stays visible in the record."""
    if isinstance(value, dict):
        return {key: _recordable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_recordable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"non_finite": str(value)}
    return value
