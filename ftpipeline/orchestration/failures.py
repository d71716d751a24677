"""Errors as Dagster failures: one line for people, and what a caller needs to raise the same error again."""

import dagster as dg

from ftpipeline.errors import FtpipelineError


def as_failure(error: FtpipelineError) -> dg.Failure:
    """Return the failure of a stage; running it again by itself would only fail again."""
    return dg.Failure(str(error), {"error": type(error).__name__, "exit_code": error.exit_code}, allow_retries=False)
