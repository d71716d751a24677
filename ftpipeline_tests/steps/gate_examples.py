"""Evaluation reports to gate, complete and comparable unless a test breaks them."""

from typing import Any

from ftpipeline.digest import Digest, of_bytes

GATES = {"task_min_gain_vs_prod": 0.005, "regression_max_drop": 0.01, "safety_max_drop": 0.0}
CANDIDATE, PRODUCTION, MANIFEST = (of_bytes(name) for name in (b"candidate", b"production", b"manifest"))
COUNTS = {"n": 1000, "correct": 800, "abstained": 10, "distinct_predictions": 40, "distinct_expected": 40}


def report(artifact: Digest, task: Any = 0.8, regression: Any = 0.7, safety: Any = 0.99) -> dict[str, Any]:
    roles = ("task", "regression", "safety")
    return {
        "artifact": artifact,
        "eval_sets": {role: of_bytes(role.encode()) for role in roles},
        "scorer": "int8-onnx/1",
        "metrics": {"task": task, "regression": regression, "safety": safety},
        "counts": {role: dict(COUNTS) for role in roles},
    }
