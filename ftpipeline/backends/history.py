"""What was measured so far: kept in the output, told to the launcher, and heard by the checks, live or on a resume."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ftpipeline.backends.channel import Channel, ChannelMetricSink, JsonlMetricSink, append_line
from ftpipeline.backends.protocol import Message
from ftpipeline.steps.ports import MetricPoint
from ftpipeline.steps.train_output import EVALUATIONS, METRICS


@dataclass(frozen=True)
class EvaluationPoint:
    """What was measured on rows that are not trained on; all numbers are finite.

    Attributes:
        step: optimizer step after which it was measured.
        val_loss: mean loss of the validation rows, in nats.
        scores: score name to value.
        more: what else was measured, by the names of the protocol (`kl`, `probe`).
    """

    step: int
    epoch: float
    val_loss: float
    scores: Mapping[str, float]
    more: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> Message:
        """Return it as a JSON object. Law: `EvaluationPoint.parse(point.record()) == point`."""
        own = {"step": self.step, "epoch": self.epoch, "val_loss": self.val_loss, "scores": dict(self.scores)}
        return own | dict(self.more)

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> "EvaluationPoint":
        """Return the point that a record stands for."""
        own = ("step", "epoch", "val_loss", "scores")
        more = {name: value for name, value in record.items() if name not in own}
        return cls(record["step"], record["epoch"], record["val_loss"], record["scores"], more)


class Check(Protocol):
    """Ends a training that cannot become good.

    It hears every measurement once and in order: on a resume those before the checkpoint first, so that it judges as
    it would have without an interruption.
    """

    def on_step(self, point: MetricPoint) -> None:
        """Hear an optimizer step's metrics; raise TrainingFailedError to end the training."""

    def on_evaluation(self, point: EvaluationPoint) -> None:
        """Hear an evaluation; raise TrainingFailedError to end the training."""


class History:
    """All measurements of one training, over its attempts."""

    def __init__(self, out: Path, channel: Channel, checks: Sequence[Check]) -> None:
        """Begin with nothing measured.

        Args:
            out: folder of the output; the measurements are kept in it.
            channel: told of what is new.
            checks: hear everything, after it was kept and told.
        """
        self._out = out
        self._channel = channel
        self._checks = checks
        self._sinks = (JsonlMetricSink(out / METRICS), ChannelMetricSink(channel))
        (out / EVALUATIONS).write_bytes(b"")
        self.last_evaluated = 0

    def add_step(self, point: MetricPoint) -> None:
        """Keep an optimizer step's metrics, tell them and let the checks judge."""
        for sink in self._sinks:
            sink.emit(point)
        self._judge_step(point)

    def add_evaluation(self, point: EvaluationPoint) -> None:
        """Keep an evaluation, tell it and let the checks judge."""
        append_line(self._out / EVALUATIONS, point.record())
        self._channel.evaluation(point.record())
        self._judge_evaluation(point)

    def save(self, folder: Path) -> None:
        """Copy what was measured so far into a checkpoint's folder."""
        for name in (METRICS, EVALUATIONS):
            shutil.copyfile(self._out / name, folder / name)

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint's folder: its measurements are kept again and judged, but not told again."""
        for name in (METRICS, EVALUATIONS):
            shutil.copyfile(folder / name, self._out / name)
        evaluations = {record["step"]: EvaluationPoint.parse(record) for record in _records(folder / EVALUATIONS)}
        for record in _records(folder / METRICS):
            step, epoch = record.pop("step"), record.pop("epoch")
            self._judge_step(MetricPoint(step, epoch, record))
            if step in evaluations:
                self._judge_evaluation(evaluations[step])

    def _judge_step(self, point: MetricPoint) -> None:
        for check in self._checks:
            check.on_step(point)

    def _judge_evaluation(self, point: EvaluationPoint) -> None:
        self.last_evaluated = point.step
        for check in self._checks:
            check.on_evaluation(point)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
