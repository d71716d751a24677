"""What a launcher and its worker process say to each other; loads no machine-learning library.

A worker runs as `python -m MODULE REQUEST.json`. It speaks in messages, JSON objects with one key each:

* `{"progress": [done, total, note]}`
* `{"metric": {"step": 3, "epoch": 0.5, "loss": 1.2, ...}}`; `{"non_finite": "nan" | "inf" | "-inf"}` for such a value
* `{"error": {"type": "TrainingFailedError", "message": "..."}}`

one a line on its standard output, or as custom messages where the launcher opened a Dagster Pipes session. Its exit
code is 0 when the output is complete, the code of the error's branch (1 verdict, 2 input, 3 environment) when it says
why not, and 75 when it stopped because it was asked to. A verdict is believed only when it was said: a worker that dies
without a word is an environment problem, whatever its exit code.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline import errors
from ftpipeline.errors import FtpipelineError, WorkerError, WorkerInterruptedError
from ftpipeline.steps.ports import Progress, WorkerRequest, silent

EXIT_INTERRUPTED = 75

Message = dict[str, Any]

_SAYABLE: Mapping[str, type[FtpipelineError]] = {
    error.__name__: error
    for error in (
        errors.VerdictError,
        errors.BaseModelMismatchError,
        errors.TokenizerMismatchError,
        errors.LeakageError,
        errors.TrainingFailedError,
        errors.InputError,
        errors.EmptyResultError,
        errors.LabelError,
        errors.EnvironmentProblemError,
        errors.MissingDependencyError,
        errors.WorkerError,
        errors.WorkerInterruptedError,
    )
}
"""The errors that travel by name: those that are made from a message alone."""


def command(request: WorkerRequest, request_file: Path) -> list[str]:
    """Return the command line that runs the worker of `request`."""
    return [sys.executable, "-P", "-m", request.module, str(request_file)]


def write_request(request: WorkerRequest, path: Path) -> None:
    """Write `request` for a worker that is to end with this process.

    Law: `read_request(path)` returns `request` and this process's id, with every folder made absolute.
    """
    document = {
        "module": request.module,
        "inputs": {name: str(folder.absolute()) for name, folder in request.inputs.items()},
        "params": dict(request.params),
        "out": str(request.out.absolute()),
        "parent": os.getpid(),
    }
    path.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")


def read_request(path: Path) -> tuple[WorkerRequest, int]:
    """Return the request in `path` and the process id of the launcher that wrote it.

    Raises:
        WorkerError: the file is missing or is no request.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        inputs = {name: Path(folder) for name, folder in document["inputs"].items()}
        request = WorkerRequest(document["module"], inputs, document["params"], Path(document["out"]))
        return request, int(document["parent"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkerError(
            f"request {path.name} cannot be read ({error!r}); start the worker through a launcher"
        ) from error


def error_message(error: FtpipelineError) -> Message:
    """Return the message that tells the launcher of `error`, by the nearest name that can travel."""
    name = next(base.__name__ for base in type(error).__mro__ if base.__name__ in _SAYABLE)
    return {"error": {"type": name, "message": str(error)}}


class WorkerOutcome:
    """Listens to one worker and tells at its end how it went.

    Args:
        module: the worker's module, for messages.
        progress: told of every progress message.
    """

    def __init__(self, module: str, progress: Progress = silent) -> None:
        self._module = module
        self._progress = progress
        self._error: FtpipelineError | None = None

    def hear_line(self, line: str) -> None:
        """Take one line of standard output; a line that is no JSON object is a library's, not the worker's."""
        try:
            message = json.loads(line)
        except ValueError:
            return
        if isinstance(message, dict):
            self.hear(message)

    def hear(self, message: Mapping[str, Any]) -> None:
        """Take one message; the last error counts.

        Raises:
            WorkerError: a message of a known kind has another form than the protocol's.
        """
        try:
            if "progress" in message:
                done, total, note = message["progress"]
                self._progress(int(done), int(total), str(note))
            elif "error" in message:
                self._error = _SAYABLE[message["error"]["type"]](message["error"]["message"])
        except (KeyError, TypeError, ValueError) as error:
            raise WorkerError(
                f"worker {self._module} sent a message of unknown form ({error!r}); install one version on both sides"
            ) from error

    def raise_unless_good(self, returncode: int, last_words: str) -> None:
        """Return if the worker ended with 0 and said no error.

        Args:
            returncode: as `subprocess` gives it; negative for a signal.
            last_words: the last line of standard error, shown when the worker said no error itself.

        Raises:
            FtpipelineError: what the worker said; otherwise WorkerInterruptedError for 75 and WorkerError for all else.
        """
        if self._error is not None:
            raise self._error
        if returncode == EXIT_INTERRUPTED:
            raise WorkerInterruptedError(f"worker {self._module} was asked to stop and did; run again")
        if returncode != 0:
            said = f": {last_words}" if last_words else " without a word"
            raise WorkerError(
                f"worker {self._module} ended with {_ending(returncode)}{said}; check memory and installation"
            )


def _ending(returncode: int) -> str:
    """Name an exit code, or the signal that a negative one stands for."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
