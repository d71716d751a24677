"""Read what a training left behind; what is not complete, or holds a number that is not finite, is refused."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ftpipeline.errors import NonFiniteError, TrainingFailedError
from ftpipeline.records import Facts

ADAPTER = "adapter"
WEIGHTS_FILE = "adapter_model.safetensors"
CONFIG_FILE = "adapter_config.json"
METRICS = "metrics.jsonl"
EVALUATIONS = "evaluations.jsonl"
SUMMARY = "train.json"
CURVE_POINTS = 200
_MEASURED = ("loss", "grad_norm", "learning_rate")


def read_training(out: Path) -> Facts:
    """Return the facts of a complete training.

    Returns:
        The content of `train.json`, with `first_loss`, `last_loss` and `loss_curve`, at most 200 pairs (step, loss).

    Raises:
        TrainingFailedError: a file is missing or unreadable, a step was not measured, or a number is not finite.
    """
    weights = f"{ADAPTER}/{WEIGHTS_FILE}"
    for name in (weights, f"{ADAPTER}/{CONFIG_FILE}", METRICS, SUMMARY):
        if not (out / name).is_file():
            raise TrainingFailedError(f"training left no {name}; train again")
    summary = _parse((out / SUMMARY).read_text(encoding="utf-8"), SUMMARY)
    points = [_parse(line, METRICS) for line in (out / METRICS).read_text(encoding="utf-8").splitlines()]
    _check_points(points, summary.get("steps"))
    _check_weights(out / weights)
    losses = [[point["step"], point["loss"]] for point in points]
    return summary | {"first_loss": losses[0][1], "last_loss": losses[-1][1], "loss_curve": thin(losses, CURVE_POINTS)}


def thin(points: Sequence[Any], limit: int) -> list[Any]:
    """Return at most `limit` of `points`, evenly spaced, the first and the last among them; `limit` is at least 2."""
    if len(points) <= limit:
        return list(points)
    return [points[round(index * (len(points) - 1) / (limit - 1))] for index in range(limit)]


def _parse(text: str, name: str) -> dict[str, Any]:
    def refuse(constant: str) -> float:
        raise ValueError(f"it holds {constant}")

    try:
        document = json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise TrainingFailedError(f"{name} of the training is not strict JSON ({error}); train again") from error
    if not isinstance(document, dict):
        raise TrainingFailedError(f"{name} of the training holds no JSON object; train again")
    return document


def _check_points(points: Sequence[dict[str, Any]], steps: object) -> None:
    if not points or steps != len(points) or [point.get("step") for point in points] != [*range(1, len(points) + 1)]:
        raise TrainingFailedError(f"{METRICS} measures {len(points)} steps where {SUMMARY} has {steps}; train again")
    for point in points:
        for name in _MEASURED:
            value = point.get(name)
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise NonFiniteError(f"{name} is {value} at step {point['step']}; lower the learning rate")


def _check_weights(path: Path) -> None:
    import numpy
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise TrainingFailedError(f"{path.name} cannot be read ({error}); train again") from error
    if not weights:
        raise TrainingFailedError(f"{path.name} holds no weight; train again")
    for name, weight in sorted(weights.items()):
        if not numpy.isfinite(weight).all():
            raise NonFiniteError(f"adapter weight {name} is not finite; lower the learning rate")
