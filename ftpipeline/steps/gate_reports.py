"""May two evaluation reports be compared at all? Presence, type, range and identity, before any threshold.

A report is `{"artifact": digest, "eval_sets": {role: digest}, "scorer": text, "metrics": {role: number},
"counts": {role: {"n", "correct", "abstained", "distinct_predictions", "distinct_expected"}}}`, and may name its
`averaging` and the `classes` that each set expects. What is missing, not a number or not finite is never a pass: every
comparison with NaN is false, so it would slip through any threshold.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ftpipeline.digest import parse
from ftpipeline.errors import DigestError
from ftpipeline.steps.gate_arithmetic import ROLES
from ftpipeline.steps.paired import SCORED_BY, SIDES, Pairs

Report = Mapping[str, Any]

COUNTS = ("n", "correct", "abstained", "distinct_predictions", "distinct_expected")
"""What a report counts on each eval set."""


@dataclass(frozen=True)
class Reason:
    """One reason for a verdict.

    Attributes:
        code: stable name that scripts rely on.
        message: what a person reads.
    """

    code: str
    message: str


def report_problems(side: str, report: Report) -> list[Reason]:
    """Return everything that makes one report unusable; empty when it can be compared.

    Args:
        side: `candidate` or `production`, named in the messages.
        report: the report.
    """
    problems = list(_identity_problems(side, report))
    for field, check in (("eval_sets", _eval_set), ("metrics", _metric), ("counts", _counts)):
        problems += _by_role(side, field, report.get(field), check)
    return problems


def _identity_problems(side: str, report: Report) -> Iterator[Reason]:
    if not _is_digest(report.get("artifact")):
        yield Reason("artifact_missing", f"{side} report names no artifact digest; evaluate it again")
    scorer = report.get("scorer")
    if not isinstance(scorer, str) or not scorer:
        yield Reason("scorer_missing", f"{side} report names no scorer; evaluate it again")


_Check = Callable[[str, object], Iterator[Reason]]


def _by_role(side: str, field: str, values: object, check: _Check) -> Iterator[Reason]:
    if not isinstance(values, Mapping):
        yield Reason(f"{field}_missing", f"{side} report has no {field}; evaluate it again")
        return
    for role in ROLES:
        yield from check(f"{side} {role}", values.get(role))
    for role in sorted(set(map(str, values)) - set(ROLES)):
        yield Reason(f"{field}_unknown", f"{side} report has {field} for {role!r}; a report has {', '.join(ROLES)}")


def _eval_set(where: str, value: object) -> Iterator[Reason]:
    if not _is_digest(value):
        yield Reason("eval_set_missing", f"{where}: the eval set is not named by its digest")


def _metric(where: str, value: object) -> Iterator[Reason]:
    if value is None:
        yield Reason("metric_missing", f"{where}: no metric was measured")
    elif isinstance(value, bool) or not isinstance(value, int | float):
        yield Reason("metric_not_a_number", f"{where}: {value!r} is not a number")
    elif isinstance(value, float) and not math.isfinite(value):
        yield Reason("metric_not_finite", f"{where}: {value!r} is not finite")
    elif not 0 <= value <= 1:
        yield Reason("metric_out_of_range", f"{where}: {value!r} is not in [0, 1]; metrics are fractions, not percent")


def _counts(where: str, value: object) -> Iterator[Reason]:
    if not isinstance(value, Mapping) or any(name not in value for name in COUNTS):
        yield Reason("counts_missing", f"{where}: counts must hold {', '.join(COUNTS)}")
        return
    numbers = [value[name] for name in COUNTS]
    if any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in numbers):
        yield Reason("counts_invalid", f"{where}: counts are not whole numbers from 0")
    elif value["n"] == 0 or any(number > value["n"] for number in numbers):
        yield Reason("counts_invalid", f"{where}: counts do not fit a set of n = {value['n']} rows")


def _is_digest(value: object) -> bool:
    try:
        parse(value)
    except DigestError:
        return False
    return True


def mismatches(candidate: Report, production: Report) -> list[Reason]:
    """Return what two usable reports were not both measured with; empty when they can be compared."""
    found = [
        Reason("eval_set_mismatch", f"{role}: candidate and production were scored on different eval sets; score both")
        for role in ROLES
        if candidate["eval_sets"][role] != production["eval_sets"][role]
    ]
    found += [
        Reason("rows_mismatch", f"{role}: candidate and production were scored on different row counts; score both")
        for role in ROLES
        if candidate["counts"][role]["n"] != production["counts"][role]["n"]
    ]
    found += [
        Reason("classes_mismatch", f"{role}: scores are means over different classes; score both on the same labels")
        for role in ROLES
        if _classes(candidate, role) != _classes(production, role)
    ]
    if candidate["scorer"] != production["scorer"]:
        found.append(Reason("scorer_mismatch", f"scorers differ: {candidate['scorer']} and {production['scorer']}"))
    if candidate.get("averaging") != production.get("averaging"):
        found.append(Reason("averaging_mismatch", "scores are averaged by different rules; evaluate both again"))
    return found


def _classes(report: Report, role: str) -> object:
    """What a set expects: how many answers, and which where the report names them."""
    named = report.get("classes")
    return report["counts"][role]["distinct_expected"], named.get(role) if isinstance(named, Mapping) else named


def unpaired(candidate: Report, production: Report, answers: Mapping[str, Pairs]) -> list[Reason]:
    """Return where reports say something else than the answers that they were measured on; empty when they agree.

    Args:
        candidate: a usable report.
        production: a usable report on the same sets.
        answers: both artifacts' answers by role.
    """
    found = []
    for role in ROLES:
        if role not in answers:
            found.append(Reason("answers_missing", f"{role}: no answers are kept; evaluate both artifacts again"))
            continue
        for side, report in zip(SIDES, (candidate, production), strict=True):
            said = (report["counts"][role]["n"], report["counts"][role]["correct"], report["metrics"][role])
            pairs = answers[role]
            if said != (pairs.rows, pairs.correct(side), pairs.score(side, SCORED_BY[role])):
                message = f"{side} {role}: the report does not follow from its answers; evaluate that artifact again"
                found.append(Reason("answers_mismatch", message))
    return found


def uninformative_sets(side: str, report: Report) -> list[Reason]:
    """Return the sets that cannot tell a good model from a bad one, by the answers of `side` in a usable report.

    A set with differing expected answers on which a model scores zero, or gives one constant answer, measures a broken
    label list or prompt, not the model. A set with one expected answer (all out of scope) is meant to be answered so.
    """
    found = []
    for role in ROLES:
        counts = report["counts"][role]
        if counts["distinct_expected"] > 1 and (report["metrics"][role] == 0 or counts["distinct_predictions"] <= 1):
            found.append(
                Reason("set_uninformative", f"{role}: {side} scores zero or answers one constant; check labels and set")
            )
    return found
