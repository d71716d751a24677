"""Steps as lines of the run's log: one a step, and a progress line at most every few seconds."""

import logging
import time
from collections.abc import Sequence

from ftpipeline.records import Action, StepObserver, StepResult

_SECONDS_BETWEEN_LINES = 5.0  # one event of Dagster's log costs milliseconds and stays for ever


class LogObserver:
    """Writes steps and throttled progress to a log."""

    def __init__(self, log: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> None:
        self._log = log
        self._last = time.monotonic()

    def started(self, step: str) -> None:
        """Say that a step is executed."""
        self._log.info(f"{step}: executing")

    def progress(self, step: str, done: int, total: int, note: str = "") -> None:
        """Say how far a step got, unless a line was written a moment ago."""
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LINES and done < total:
            return
        self._last = now
        self._log.info(f"{step}: {done}/{total} {note}".rstrip())

    def said(self, step: str, level: str, text: str) -> None:
        """Pass a step's line on."""
        self._log.log(logging.getLevelNamesMapping().get(level.upper(), logging.INFO), f"{step}: {text}")

    def finished(self, result: StepResult) -> None:
        """Say what an executed step came to; that one was reused is in its metadata, and a line costs milliseconds."""
        if result.action is Action.EXECUTED:
            self._log.info(f"{result.step}: executed {result.output} in {result.seconds:.1f} s")


class Observers:
    """Passes everything on to several observers."""

    def __init__(self, observers: Sequence[StepObserver]) -> None:
        self._observers = tuple(observers)

    def started(self, step: str) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.started(step)

    def progress(self, step: str, done: int, total: int, note: str = "") -> None:
        """Pass on."""
        for observer in self._observers:
            observer.progress(step, done, total, note)

    def said(self, step: str, level: str, text: str) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.said(step, level, text)

    def finished(self, result: StepResult) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.finished(result)
