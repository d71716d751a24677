"""Killing a process at each of its write points in turn, without a hook in the code that is tested.

A write point is an event that the interpreter announces to audit hooks before it opens a file for writing, links,
renames or removes one, a call that writes or syncs, and each changing statement and commit that SQLAlchemy sends. Just
before the chosen one, the process sends itself SIGKILL.
"""

import io
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

from sqlalchemy import Engine, event

Work = Callable[[Path], None]
"""Works on a home; importable, because it is run in another process."""

_FILE_EVENTS = {"os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime"}
_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"INSERT", "UPDATE", "DELETE"}
_WRITING_CALLS = {"write", "flush", "fsync", "fchmod", "sendfile", "copy_file_range"}
_NEVER = sys.maxsize


class _Countdown:
    """Counts write points, and kills the process at one of them."""

    def __init__(self, fatal: int, folder: Path) -> None:
        self.passed = 0
        self._fatal = fatal
        self._folder = str(folder)

    def audit(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "open":
            path, _, flags = arguments
            if str(path).startswith(self._folder) and flags & _WRITING_FLAGS:
                self.pass_one()
        elif name in _FILE_EVENTS:
            self.pass_one()

    def profile(self, frame: FrameType, name: str, called: Any) -> None:
        in_memory = isinstance(getattr(called, "__self__", None), io.BytesIO | io.StringIO)
        if name == "c_call" and called.__name__ in _WRITING_CALLS and not in_memory:
            self.pass_one()

    def execute(self, connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.split(maxsplit=1)[0] in _CHANGES:
            self.pass_one()

    def commit(self, connection: Any) -> None:
        self.pass_one()

    def pass_one(self) -> None:
        self.passed += 1
        if self.passed == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def _run(work: Work, home: Path, fatal: int, count: Path) -> None:
    countdown = _Countdown(fatal, home)
    event.listen(Engine, "before_cursor_execute", countdown.execute)
    event.listen(Engine, "commit", countdown.commit)
    sys.addaudithook(countdown.audit)
    sys.setprofile(countdown.profile)
    work(home)
    sys.setprofile(None)
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
