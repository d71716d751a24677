"""What a launcher and its worker process say to each other; loads no machine-learning library.

A worker runs as `python -m MODULE REQUEST.json`. It speaks in messages, JSON objects with one key each:

* `{"progress": [done, total, note]}`
* `{"metric": {"step": 3, "epoch": 0.5, "loss": 1.2, ...}}`; `{"non_finite": "nan" | "inf" | "-inf"}` for such a value
* `{"evaluation": {"step": 3, "epoch": 0.5, "val_loss": 1.1, "scores": {...}, ...}}`
* `{"checkpoint": {"step": 3, "epoch": 0.5, "folder": "checkpoint-3"}}`; the folder is complete, in the exchange
* `{"consume": {"ticket": 1, "use": "merge", "job": "...", "step": 40, "at_step": 7}}`; the answer is a file, too
* `{"error": {"type": "TrainingFailedError", "message": "..."}}`

one a line on its standard output, or as custom messages where the launcher opened a Dagster Pipes session. Its exit
code is 0 when the output is complete, the code of the error's branch (1 verdict, 2 input, 3 environment) when it says
why not, and 75 when it stopped because it was asked to. A verdict is believed only when it was said: a worker that dies
without a word is an environment problem, whatever its exit code.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline import errors
from ftpipeline.errors import FtpipelineError, TrainingFailedError, WorkerError
from ftpipeline.steps.ports import WorkerRequest

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
        errors.NonFiniteError,
        errors.ZeroLossError,
        errors.GradientSpikeError,
        errors.LossExplosionError,
        errors.OverfittingError,
        errors.NoLearningError,
        errors.DeadTargetError,
        errors.UnlabelledSampleError,
        errors.CheckpointError,
        errors.AdapterKeysError,
        errors.JobHaltedError,
        errors.ExportCheckError,
        errors.InputError,
        errors.UnknownNameError,
        errors.EmptyResultError,
        errors.LabelError,
        errors.ModelFilesError,
        errors.EnvironmentProblemError,
        errors.StoreError,
        errors.LedgerError,
        errors.LeaseLostError,
        errors.MissingDependencyError,
        errors.WorkerError,
        errors.WorkerInterruptedError,
    )
}
"""The errors that travel by name: those that are made from a message, and evidence at most."""


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
        "exchange": _text(request.exchange),
        "resume": _text(request.resume),
        "checkpoint_steps": request.checkpoint_steps,
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
        request = WorkerRequest(
            document["module"],
            inputs,
            document["params"],
            Path(document["out"]),
            _path(document["exchange"]),
            _path(document["resume"]),
            document["checkpoint_steps"],
        )
        return request, int(document["parent"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkerError(
            f"request {path.name} cannot be read ({error!r}); start the worker through a launcher"
        ) from error


def _text(folder: Path | None) -> str | None:
    return None if folder is None else str(folder.absolute())


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def error_message(error: FtpipelineError) -> Message:
    """Return the message that tells of `error`, by the nearest name that can travel, with what a check saw."""
    return {"error": described(error)}


def described(error: FtpipelineError) -> Message:
    """Return `error` as JSON. Law: `revived(described(error))` is the error, if its class can travel."""
    name = next(base.__name__ for base in type(error).__mro__ if base.__name__ in _SAYABLE)
    evidence = {"evidence": dict(error.evidence)} if isinstance(error, TrainingFailedError) else {}
    return {"type": name, "message": str(error), **evidence}


def revived(document: Mapping[str, Any]) -> FtpipelineError:
    """Return the error that `described` described.

    Raises:
        KeyError, TypeError: it is of no class that travels, or has another form.
    """
    kind = _SAYABLE[document["type"]]
    if issubclass(kind, TrainingFailedError):
        return kind(document["message"], document.get("evidence", {}))
    return kind(document["message"])


def answer_file(exchange: Path, ticket: int) -> Path:
    """Return the place of the answer to a worker's question."""
    return exchange / f"answer-{ticket}.json"
