"""Errors as Dagster failures: one line for people, and what a caller needs to raise the same error again."""

from typing import Any

import dagster as dg

from ftpipeline.errors import FtpipelineError, TrainingFailedError, WorkerError, WorkerInterruptedError

_RETRIED_STAGE, _RETRIES = "train", 2
_CUT_SHORT = (WorkerError, WorkerInterruptedError)
"""A worker that was stopped or killed: what it saved is there, and the next attempt goes on from it."""


def failure_of(stage: str, error: FtpipelineError, retries: int) -> dg.Failure | dg.RetryRequested:
    """Return what a stage ends with: a training that was cut short asks to be run again, everything else has failed.

    The stage asks by itself, because under a retry policy Dagster also runs again what it was told to end.

    Args:
        stage: name of the stage.
        error: what ended it.
        retries: how often it was run again already.
    """
    if stage == _RETRIED_STAGE and retries < _RETRIES and isinstance(error, _CUT_SHORT):
        return dg.RetryRequested(max_retries=_RETRIES)
    return as_failure(error)


def as_failure(error: FtpipelineError) -> dg.Failure:
    """Return the failure of a stage, with what a check saw."""
    said: dict[str, Any] = {"error": type(error).__name__, "exit_code": error.exit_code}
    if isinstance(error, TrainingFailedError) and error.evidence:
        said["evidence"] = dg.MetadataValue.json(dict(error.evidence))
    return dg.Failure(str(error), said, allow_retries=False)
