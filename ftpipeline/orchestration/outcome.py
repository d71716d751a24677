"""What a finished run came to, as the error that its command ends with."""

from typing import Any

import dagster as dg

from ftpipeline.errors import FtpipelineError, WorkerError, WorkerInterruptedError, named

_INTERRUPTS = frozenset({dg.DagsterExecutionInterruptedError.__name__, KeyboardInterrupt.__name__})
STOPPED = "stopped; what is finished is kept, run again"


def failure(result: dg.ExecuteInProcessResult) -> FtpipelineError:
    """Return the error of the first failed stage as the class it was raised as; of an interrupt, that it was one."""
    for event in result.filter_events(lambda event: event.is_step_failure or event.is_job_failure):
        error = event.step_failure_data.error if event.is_step_failure else event.job_failure_data.error
        if _innermost(error, "cls_name") in _INTERRUPTS:
            return WorkerInterruptedError(STOPPED)
        if event.is_step_failure:
            return _failed(str(event.step_key), event.step_failure_data)
    return WorkerError("the run failed before its first stage; the run's log in the UI says why")


def _failed(stage: str, data: Any) -> FtpipelineError:
    if data.user_failure_data is None:
        lines = str(_innermost(data.error, "message") or "").strip().splitlines()
        cause = lines[0] if lines else "no reason was given"
        return WorkerError(f"stage {stage} failed: {cause}; the run's log in the UI has the traceback")
    known = data.user_failure_data.metadata or {}
    name = known["error"].value if "error" in known else ""
    said = str(data.user_failure_data.description)
    return named(str(name), said) or WorkerError(said)


def _innermost(error: Any, what: str) -> object:
    """Return what the innermost error of a chain holds; None without an error."""
    while error is not None and error.cause is not None:
        error = error.cause
    return None if error is None else getattr(error, what)
