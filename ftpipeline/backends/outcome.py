"""The launcher's end of the protocol: what a worker says, who keeps it, and how it went."""

import json
import os
import shutil
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ftpipeline.backends.checkpoint import name_of
from ftpipeline.backends.protocol import EXIT_INTERRUPTED, answer_file, described, revived
from ftpipeline.errors import (
    EnvironmentProblemError,
    FtpipelineError,
    JobHaltedError,
    WorkerError,
    WorkerInterruptedError,
)
from ftpipeline.steps.ports import Progress, WorkerRequest, silent

Record = Mapping[str, Any]
"""A JSON object of the protocol."""


class JobJournal(ABC):
    """Keeps what a training job does, and hands out the checkpoints it may read.

    Each method raises what stands in the way; then the worker is stopped, because what is not kept must not go on.
    """

    checkpoint_steps: int
    """Optimizer steps between two checkpoints."""

    @abstractmethod
    def open(self, place: Path) -> Path | None:
        """Begin the job's next attempt.

        Args:
            place: a folder to check a checkpoint out into.

        Returns:
            The folder of the checkpoint to go on from; None where there is none.
        """

    @abstractmethod
    def metric(self, record: Record) -> None:
        """Keep an optimizer step's metrics; they are written at the next other message at the latest."""

    @abstractmethod
    def evaluation(self, record: Record) -> None:
        """Keep an evaluation."""

    @abstractmethod
    def checkpoint(self, record: Record, folder: Path) -> None:
        """Keep the complete checkpoint in `folder`; the caller removes the folder."""

    @abstractmethod
    def consume(self, record: Record, place: Path) -> Path | None:
        """Write that another job's checkpoint is read, then check it out into a folder of `place`.

        Returns:
            The folder; None while the other job may still make the checkpoint.
        """


class WorkerOutcome:
    """Listens to one worker, has kept what it says, and tells at its end how it went.

    Args:
        request: what the worker was started with.
        progress: told of every progress message.
        journal: keeps the rest; None where nobody does.
    """

    def __init__(self, request: WorkerRequest, progress: Progress = silent, journal: JobJournal | None = None) -> None:
        self._module = request.module
        self._exchange = request.exchange
        self._progress = progress
        self._journal = journal
        self._error: FtpipelineError | None = None
        self._refusal: FtpipelineError | None = None
        self.on_refusal: Callable[[], None] | None = None
        """Stops the worker; called at the first thing that could not be kept."""

    def hear_line(self, line: str) -> None:
        """Take one line of standard output; a line that is no JSON object is a library's, not the worker's."""
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict):
            self.hear(message)

    def hear(self, message: Record) -> None:
        """Take one message; the last error counts.

        Raises:
            WorkerError: a message of a known kind has another form than the protocol's.
        """
        try:
            if "progress" in message:
                done, total, note = message["progress"]
                self._progress(int(done), int(total), str(note))
            elif "error" in message:
                self._error = revived(message["error"])
            elif self._journal is not None and self._exchange is not None:
                self._keep(message, self._journal, self._exchange)
        except (KeyError, TypeError, ValueError) as error:
            raise WorkerError(
                f"worker {self._module} sent a message of unknown form ({error!r}); install one version on both sides"
            ) from error

    def mute(self) -> None:
        """Show no more progress; what is to be kept is still heard."""
        self._progress = silent

    def _keep(self, message: Record, journal: JobJournal, exchange: Path) -> None:
        if self._refusal is not None:
            return  # the worker is being stopped; nothing of it is kept any more
        try:
            if "metric" in message:
                journal.metric(message["metric"])
            elif "evaluation" in message:
                journal.evaluation(message["evaluation"])
            elif "checkpoint" in message:
                _keep_checkpoint(message["checkpoint"], journal, exchange)
            elif "consume" in message:
                _answer(message["consume"], journal, exchange)
        except FtpipelineError as error:
            self._refusal = error
            if self.on_refusal is not None:
                self.on_refusal()

    def raise_unless_good(self, returncode: int, last_words: str) -> None:
        """Return if everything was kept, the worker ended with 0 and said no error.

        Args:
            returncode: as `subprocess` gives it; negative for a signal.
            last_words: the last line of standard error, shown when the worker said no error itself.

        Raises:
            FtpipelineError: why something could not be kept; else what the worker said; otherwise
                WorkerInterruptedError for 75 and WorkerError for all else.
        """
        if self._refusal is not None:
            raise self._refusal
        if self._error is not None:
            raise self._error
        if returncode == EXIT_INTERRUPTED:
            raise WorkerInterruptedError(f"worker {self._module} was asked to stop and did; run again")
        if returncode != 0:
            said = f": {last_words}" if last_words else " without a word"
            raise WorkerError(
                f"worker {self._module} ended with {_ending(returncode)}{said}; check memory and installation"
            )


def _keep_checkpoint(record: Record, journal: JobJournal, exchange: Path) -> None:
    if record["folder"] != name_of(record["step"]):
        raise ValueError(f"checkpoint of step {record['step']} in {record['folder']!r}")
    folder = exchange / record["folder"]
    journal.checkpoint(record, folder)
    shutil.rmtree(folder)  # it is kept; a long training must not fill this disk


def _answer(record: Record, journal: JobJournal, exchange: Path) -> None:
    """Answer a worker that waits; what forbids the reading is told to it, a journal that cannot write stops it."""
    try:
        folder = journal.consume(record, exchange)
    except (JobHaltedError, EnvironmentProblemError):
        raise
    except FtpipelineError as error:
        answer: dict[str, Any] = {"error": described(error)}
    else:
        answer = {"pending": True} if folder is None else {"folder": str(folder)}
    file = answer_file(exchange, record["ticket"])
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(answer), encoding="utf-8")
    os.rename(partial, file)  # the worker finds it whole


def _ending(returncode: int) -> str:
    """Name an exit code, or the signal that a negative one stands for."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
