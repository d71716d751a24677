"""Asset checks: what people see. What is enforced is enforced inside the step that consumes the artifact."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from ftpipeline.orchestration.metadata import Metadata, facts
from ftpipeline.orchestration.present import leakage
from ftpipeline.records import Facts, StepResult, Verdict

_GOOD = (Verdict.PASS, Verdict.FIRST_RELEASE, Verdict.ALREADY_PRODUCTION)


@dataclass(frozen=True)
class Check:
    """A question about a stage's facts.

    Attributes:
        name: of the check.
        about: what is true where it passes.
        passed: answers it.
        shows: what a person sees beside the answer.
    """

    name: str
    about: str
    passed: Callable[[Facts], bool]
    shows: Callable[[Facts], Metadata]


CHECKS: Mapping[str, Check] = {
    "split": Check(
        "no_leak_left",
        "No train row is a copy of a validation or eval row.",
        lambda split: split["leakage"]["verdict"] in ("clean", "dropped"),
        leakage,
    ),
    "gate": Check(
        "gate_passed",
        "The exported candidate is good enough to replace production.",
        lambda gate: Verdict(gate["verdict"]) in _GOOD,
        lambda gate: facts({name: gate[name] for name in ("verdict", "reasons")}),
    ),
}
"""One check of a stage at most."""


def check_specs(key: dg.AssetKey, stage: str) -> Sequence[dg.AssetCheckSpec]:
    """Return the checks of a stage's asset."""
    check = CHECKS.get(stage)
    return [dg.AssetCheckSpec(check.name, asset=key, description=check.about)] if check is not None else []


def results_of_checks(stage: str, result: StepResult) -> Sequence[dg.AssetCheckResult]:
    """Answer the checks of a stage from its facts."""
    check = CHECKS.get(stage)
    if check is None:
        return []
    return [
        dg.AssetCheckResult(
            passed=check.passed(result.facts),
            check_name=check.name,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata=check.shows(result.facts),
        )
    ]
