"""The worker's end of the protocol: messages to its launcher, metrics among them."""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ftpipeline.backends.protocol import Message, error_message
from ftpipeline.errors import FtpipelineError
from ftpipeline.steps.ports import MetricPoint, MetricSink

_STDOUT, _STDERR = 1, 2
_PIPES_VARIABLE = "DAGSTER_PIPES_CONTEXT"


class Channel:
    """Says what a worker has to say.

    Args:
        send: carries one message to the launcher.
    """

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send

    def progress(self, done: int, total: int, note: str) -> None:
        """Say how many of `total` units of work are done."""
        self._send({"progress": [done, total, note]})

    def metric(self, point: MetricPoint) -> None:
        """Say what was measured at a step."""
        self._send({"metric": metric_record(point)})

    def evaluation(self, record: Message) -> None:
        """Say what was measured on rows that are not trained on."""
        self._send({"evaluation": record})

    def checkpoint(self, step: int, epoch: float, folder: str) -> None:
        """Say that a complete checkpoint stands in the exchange, under the name `folder`."""
        self._send({"checkpoint": {"step": step, "epoch": epoch, "folder": folder}})

    def consume(self, record: Message) -> None:
        """Ask for another job's checkpoint; the answer is a file in the exchange."""
        self._send({"consume": record})

    def error(self, error: FtpipelineError) -> None:
        """Say why there is no usable output."""
        self._send(error_message(error))


@contextmanager
def open_channel() -> Iterator[Channel]:
    """Open the channel that the launcher listens on: a Dagster Pipes session if it opened one, else standard output."""
    if _PIPES_VARIABLE in os.environ:
        import dagster_pipes  # needed only where an orchestrator listens

        with dagster_pipes.open_dagster_pipes() as pipes:
            yield Channel(pipes.report_custom_message)
    else:
        with _claimed_stdout() as stream:
            yield Channel(lambda message: _write_line(stream, message))


@contextmanager
def _claimed_stdout() -> Iterator[IO[str]]:
    """Yield the real standard output and send everybody else's prints to standard error."""
    with os.fdopen(os.dup(_STDOUT), "w", encoding="utf-8") as stream:
        os.dup2(_STDERR, _STDOUT)
        yield stream


def _write_line(stream: IO[str], document: Message) -> None:
    stream.write(json.dumps(document, allow_nan=False) + "\n")
    stream.flush()


class ChannelMetricSink(MetricSink):
    """Streams metrics to the launcher while the worker trains."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def _emit(self, point: MetricPoint) -> None:
        self._channel.metric(point)


class JsonlMetricSink(MetricSink):
    """Keeps metrics in a file of strict JSON lines, one a step, flushed as it goes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(b"")

    def _emit(self, point: MetricPoint) -> None:
        append_line(self._path, metric_record(point))


def append_line(path: Path, record: Message) -> None:
    """Append `record` to a file as one line of strict JSON."""
    with path.open("a", encoding="utf-8") as stream:
        _write_line(stream, record)


def metric_record(point: MetricPoint) -> Message:
    """Return `point` as a JSON object in which non-finite floats are marked (contract C1)."""
    return {"step": point.step, "epoch": point.epoch} | {name: _marked(value) for name, value in point.values.items()}


def _marked(value: float) -> Any:
    if math.isfinite(value):
        return value
    return {"non_finite": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
