"""How many threads a serving runtime may use."""

import os

from ftpipeline.errors import EnvironmentProblemError

THREADS_VARIABLE = "FTPIPELINE_THREADS"
"""Environment variable with the number of threads; one where it is not set."""


def serving_threads() -> int:
    """Return the number of threads that a serving runtime may use.

    Raises:
        EnvironmentProblemError: FTPIPELINE_THREADS is set, but to no number of threads.
    """
    text = os.environ.get(THREADS_VARIABLE, "1")
    if not text.isdecimal() or int(text) == 0:
        raise EnvironmentProblemError(f"{THREADS_VARIABLE} is {text!r}; set it to a number of threads from 1")
    return int(text)
