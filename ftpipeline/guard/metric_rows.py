"""From one row of a metrics file, whoever wrote it, to a point or a declared change."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ftpipeline.errors import SourceError
from ftpipeline.guard.points import Event, EventKind, Point

NAMES: Mapping[str, str] = {
    "loss": "loss",
    "train/loss": "loss",
    "grad_norm": "grad_norm",
    "train/grad_norm": "grad_norm",
    "val_loss": "val_loss",
    "validation_loss": "val_loss",
    "eval_loss": "val_loss",
    "eval/loss": "val_loss",
    "kl": "kl",
    "eval_accuracy": "eval_accuracy",
    "eval_f1": "eval_f1",
    "eval_macro_f1": "eval_macro_f1",
}
"""Names that are read, and the metric each one is; any other, such as a summary's `train_loss`, is no step's metric."""

_SCORE = "score/"  # what begins like this is an evaluation score, the higher the better
_STEPS = ("step", "global_step")
_POINT_METRICS = ("loss", "grad_norm", "val_loss", "kl")
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
_RECENT = 128  # steps by which a repeated step is told from one that is merely out of order


@dataclass
class RowHistory:
    """What the rows so far say about the next one; JSON.

    Attributes:
        job: job of the file; rows of another one do not belong to its curve.
        attempt: attempt of the last row.
        implied: attempts that no row names, but that repeated steps show.
        steps: the last steps of the attempt.
        loss: last training loss; None for one that is not finite, which strict JSON cannot hold.
        has_grad_norm: whether a gradient norm was ever a number.
    """

    job: str | None = None
    attempt: int | None = None
    implied: int = 0
    steps: list[int] = field(default_factory=list)
    loss: float | None = None
    has_grad_norm: bool = False

    def read(self, row: Mapping[str, Any]) -> Point | Event | None:
        """Return what a row says; None for a row without a step's metric, such as a summary.

        Raises:
            SourceError: the row cannot be used; the message is the reason.
        """
        self._check_job(row)
        event = row.get("event")
        values = {} if event is not None else self._values(row)
        if event is None and not values:
            return None
        step, attempt = _step(row), _attempt(row)
        if event is not None:
            return Event(step, _event_kind(event), attempt)
        return self._point(step, attempt, values)

    def _check_job(self, row: Mapping[str, Any]) -> None:
        job = row.get("job", row.get("job_id"))
        if job is None:
            return
        self.job = str(job) if self.job is None else self.job
        if str(job) != self.job:
            raise SourceError(f"row of job {str(job)!r} in a file of job {self.job!r}")

    def _values(self, row: Mapping[str, Any]) -> dict[str, float]:
        """Return the metrics of a row; a table's empty and NaN cells beside a loss are what was not measured there."""
        dense = any(NAMES.get(name) == "loss" and value is not None for name, value in row.items())
        values = {}
        for name, value in row.items():
            metric = name if name.startswith(_SCORE) else NAMES.get(name)
            if metric is None or value == "":
                continue
            number = self._null(metric, dense) if value is None else _number(name, value)
            if number is None or (dense and math.isnan(number) and metric not in ("loss", "grad_norm")):
                continue
            values[metric] = number
        return self._with_hidden(row, values)

    def _null(self, metric: str, dense: bool) -> float | None:
        """Return what null stands for: a gradient norm that was a number before has become none."""
        return math.nan if metric == "grad_norm" and dense and self.has_grad_norm else None

    def _with_hidden(self, row: Mapping[str, Any], values: dict[str, float]) -> dict[str, float]:
        """Unveil a training loss that a trainer repeats in place of NaN: its gradient norm is null."""
        repeated = "loss" in values and values["loss"] == self.loss
        null = any(NAMES.get(name) == "grad_norm" and value is None for name, value in row.items())
        if repeated and null:
            values["grad_norm"] = math.nan
        return values

    def _point(self, step: int, attempt: int | None, values: Mapping[str, float]) -> Point:
        self._follow(step, attempt)
        loss, norm = values.get("loss"), values.get("grad_norm")
        if loss is not None:
            self.loss = loss if math.isfinite(loss) else None
        self.has_grad_norm = self.has_grad_norm or (norm is not None and math.isfinite(norm))
        named = {metric: values.get(metric) for metric in _POINT_METRICS}
        scores = {metric: value for metric, value in values.items() if metric not in _POINT_METRICS}
        return Point(step, (self.attempt or 1) + self.implied, **named, scores=scores)

    def _follow(self, step: int, attempt: int | None) -> None:
        """Note the step; going back to one that was seen, or to before all that are remembered, is a resumed run."""
        if attempt is not None and attempt != self.attempt:
            self.attempt, self.steps = attempt, []
        last = max(self.steps, default=step)
        if attempt is None and step < last and (step in self.steps or step < min(self.steps)):
            self.implied, self.steps = self.implied + 1, []
        self.steps = [*self.steps, step][-_RECENT:]


def _step(row: Mapping[str, Any]) -> int:
    for name in _STEPS:
        if name in row:
            return _whole(name, row[name])
    raise SourceError("no step")


def _attempt(row: Mapping[str, Any]) -> int | None:
    value = row.get("attempt")
    return None if value is None or value == "" else _whole("attempt", value)


def _whole(name: str, value: object) -> int:
    number = _number(name, value)
    if not math.isfinite(number) or number != int(number) or number < 0:
        raise SourceError(f"{name} is {value!r}, not a whole number from 0 on")
    return int(number)


def _number(name: str, value: object) -> float:
    """Return a number, whichever way its writer writes it.

    Raises:
        SourceError: it is none.
    """
    if isinstance(value, Mapping):
        value = value.get("non_finite")
    if isinstance(value, str):
        word = value.strip()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        try:
            return float(word)
        except ValueError:
            raise SourceError(f"{name} is {value!r}, not a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SourceError(f"{name} is {value!r}, not a number")
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf


def _event_kind(value: object) -> EventKind:
    try:
        return EventKind(str(value))
    except ValueError:
        raise SourceError(f"event {value!r} is not one of {', '.join(EventKind)}") from None
