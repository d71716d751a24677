"""Evaluation reports to gate, complete and comparable unless a test breaks them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.steps.metrics import AVERAGING, classification_report
from ftpipeline.steps.paired import SCORED_BY, Pairs

GATES = {"task_min_gain_vs_prod": 0.005, "regression_max_drop": 0.01, "safety_max_drop": 0.0}
CANDIDATE, PRODUCTION, MANIFEST = (of_bytes(name) for name in (b"candidate", b"production", b"manifest"))
COUNTS = {"n": 1000, "correct": 800, "abstained": 10, "distinct_predictions": 40, "distinct_expected": 40}
ROLES = ("task", "regression", "safety")
LABELS = ("billing", "login", "shipping")


def report(artifact: Digest, task: Any = 0.8, regression: Any = 0.7, safety: Any = 0.99) -> dict[str, Any]:
    return {
        "artifact": artifact,
        "eval_sets": {role: of_bytes(role.encode()) for role in ROLES},
        "scorer": "int8-onnx/1",
        "metrics": {"task": task, "regression": regression, "safety": safety},
        "counts": {role: dict(COUNTS) for role in ROLES},
    }


def answers_of(rows: int, right: int, labels: Sequence[str] = LABELS) -> list[str]:
    """Return answers to `expected_of(rows)` of which the first `right` are as expected and the others are not."""
    return [labels[(row + (row >= right)) % len(labels)] for row in range(rows)]


def expected_of(rows: int, labels: Sequence[str] = LABELS) -> list[str]:
    return [labels[row % len(labels)] for row in range(rows)]


def measured(artifact: Digest, expected: Sequence[str], given: Sequence[str]) -> dict[str, Any]:
    """Return the report of an artifact that gives the same answers on the set of every role."""
    found = classification_report(expected, given, LABELS)
    return {
        **report(artifact),
        "averaging": AVERAGING,
        "classes": {role: sorted(set(expected)) for role in ROLES},
        "metrics": {role: getattr(found, metric) for role, metric in SCORED_BY.items()},
        "counts": {role: {name: getattr(found, name) for name in COUNTS} for role in ROLES},
    }


def paired(expected: Sequence[str], candidate: Sequence[str], production: Sequence[str]) -> Mapping[str, Pairs]:
    """Return the same paired answers for every role."""
    return dict.fromkeys(ROLES, Pairs.of_answers(expected, candidate, production))
