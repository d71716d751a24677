"""Asset checks: what people see. What is enforced is enforced inside the step that consumes the artifact."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dagster as dg

from ftpipeline.orchestration.present import metadata_value
from ftpipeline.records import Facts, StepResult, Verdict

_GOOD = (Verdict.PASS, Verdict.FIRST_RELEASE, Verdict.ALREADY_PRODUCTION)


@dataclass(frozen=True)
class Check:
    """A question about a stage's facts."""

    name: str
    about: str
    passed: Callable[[Facts], bool]
    shown: tuple[str, ...]


CHECKS: dict[str, Check] = {
    "split": Check(
        "no_leak_left",
        "No train row is a copy of a validation or eval row.",
        lambda facts: facts["leakage"]["verdict"] in ("clean", "dropped"),
        ("leakage", "leaked"),
    ),
    "gate": Check(
        "gate_passed",
        "The exported candidate is good enough to replace production.",
        lambda facts: Verdict(facts["verdict"]) in _GOOD,
        ("verdict", "reasons"),
    ),
    "register": Check(
        "not_rejected",
        "The entry stands in a stage that can be promoted.",
        lambda facts: facts["stage"] != "rejected",
        ("stage", "reasons"),
    ),
}


def check_specs(key: dg.AssetKey, stage: str) -> Sequence[dg.AssetCheckSpec]:
    """Return the checks of a stage's asset."""
    check = CHECKS.get(stage)
    return [dg.AssetCheckSpec(check.name, asset=key, description=check.about)] if check is not None else []


def results_of_checks(stage: str, result: StepResult) -> Sequence[dg.AssetCheckResult]:
    """Answer the checks of a stage from its facts."""
    check = CHECKS.get(stage)
    if check is None:
        return []
    shown = {name: metadata_value(result.facts[name]) for name in check.shown}
    passed = check.passed(result.facts)
    return [
        dg.AssetCheckResult(passed=passed, check_name=check.name, severity=dg.AssetCheckSeverity.ERROR, metadata=shown)
    ]
