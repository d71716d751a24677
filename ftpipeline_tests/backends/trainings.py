"""Trainings of a tiny model in this process: what a worker does, without the time it takes to start one."""

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftpipeline.backends.channel import Channel
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.protocol import Message
from ftpipeline.steps.ports import WorkerRequest
from ftpipeline_tests.tiny_model import tiny_train_params

MODULE = "ftpipeline.backends.train_worker"


@dataclass
class Attempt:
    """One training, or what was made of it.

    Attributes:
        out: what becomes the step's output.
        exchange: where checkpoints are left.
        said: the messages to the launcher.
    """

    out: Path
    exchange: Path
    said: list[Message] = field(default_factory=list)

    @property
    def files(self) -> Mapping[str, bytes]:
        """The output's files."""
        return {
            path.relative_to(self.out).as_posix(): path.read_bytes() for path in self.out.rglob("*") if path.is_file()
        }

    @property
    def checkpoints(self) -> list[Path]:
        """The complete checkpoints, by step."""
        return sorted(self.taken.glob("checkpoint-*"), key=lambda folder: int(folder.name.rpartition("-")[2]))

    @property
    def taken(self) -> Path:
        """Where complete checkpoints are put, as a launcher takes them."""
        return self.exchange.with_name(f"taken-{self.exchange.name}")

    def of(self, kind: str) -> list[Any]:
        """The messages of one kind."""
        return [message[kind] for message in self.said if kind in message]


@dataclass
class Trainings:
    """Trains in folders of its own, again and again, on one base model and one split."""

    folder: Path
    base: Path
    split: Path
    attempts: int = 0

    def run(
        self,
        *,
        resume: Path | None = None,
        every: int | None = 5,
        stop_at: Callable[[Message], bool] = lambda message: False,
        made: list[Attempt] | None = None,
        stopped: bool = False,
        **train: Any,
    ) -> Attempt:
        """Train.

        Args:
            resume: checkpoint to go on from.
            every: steps between two checkpoints.
            stop_at: message after which SIGTERM comes.
            made: gets the attempt before it begins, for those that are cut short.
            stopped: whether SIGTERM has come before the model is built.
            train: replace fields of the training's settings.
        """
        from ftpipeline.backends.training import train as fit

        self.attempts += 1
        attempt = Attempt(self.folder / f"out-{self.attempts}", self.folder / f"exchange-{self.attempts}")
        attempt.out.mkdir(parents=True)
        attempt.exchange.mkdir()
        attempt.taken.mkdir()
        if made is not None:
            made.append(attempt)
        stop = StopRequest()

        def send(message: Message) -> None:
            attempt.said.append(message)
            if "checkpoint" in message:
                name = message["checkpoint"]["folder"]
                (attempt.exchange / name).rename(attempt.taken / name)
            if stop_at(message):
                stop.remember(signal.SIGTERM)

        if stopped:
            stop.remember(signal.SIGTERM)
        inputs = {"base_model": self.base, "split": self.split}
        params = tiny_train_params(self.base, **train)
        fit(WorkerRequest(MODULE, inputs, params, attempt.out, attempt.exchange, resume, every), Channel(send), stop)
        return attempt
