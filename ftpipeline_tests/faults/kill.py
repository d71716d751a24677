"""Killing a process at each of its write points in turn, without a hook in the code that is tested.

A write point is an event that the interpreter announces to audit hooks before it opens, links, renames or removes a
file, and each statement and commit that SQLAlchemy sends. At the chosen one the process sends itself SIGKILL.
"""

import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

Work = Callable[[Path], None]
"""Works on a home; importable, because it is run in another process."""

_FILE_EVENTS = {"os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime"}
_NEVER = sys.maxsize


class _Countdown:
    """Counts write points, and kills the process at one of them."""

    def __init__(self, fatal: int, folder: Path) -> None:
        self.passed = 0
        self._fatal = fatal
        self._folder = str(folder)

    def audit(self, name: str, arguments: tuple[Any, ...]) -> None:
        is_open = name == "open" and str(arguments[0]).startswith(self._folder)
        if is_open or name in _FILE_EVENTS:
            self.pass_one()

    def pass_one(self, *arguments: Any) -> None:
        self.passed += 1
        if self.passed == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def _run(work: Work, home: Path, fatal: int, count: Path) -> None:
    countdown = _Countdown(fatal, home)
    event.listen(Engine, "before_cursor_execute", countdown.pass_one)
    event.listen(Engine, "commit", countdown.pass_one)
    sys.addaudithook(countdown.audit)
    work(home)
    passed = countdown.passed
    count.write_text(str(passed))


def killed_at(point: int, work: Work, home: Path) -> bool:
    """Run `work` in a process that is killed at its write point `point`; tell whether it got that far.

    Args:
        point: from 1.
        work: what to do.
        home: the home it is done in.
    """
    return _exit_code(work, home, point, home.parent / "count") == -signal.SIGKILL


def write_points(work: Work, home: Path) -> int:
    """Run `work` to its end and return how many write points it has."""
    count = home.parent / "count"
    assert _exit_code(work, home, _NEVER, count) == 0
    return int(count.read_text())


def _exit_code(work: Work, home: Path, fatal: int, count: Path) -> int | None:
    context = get_context("forkserver")
    context.set_forkserver_preload([work.__module__])
    process = context.Process(target=_run, args=(work, home, fatal, count))
    process.start()
    process.join()
    return process.exitcode
