"""Knowing, waiting for and killing the descendants of a step, wherever they have moved to."""

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

from ftpipeline.engine.child import kernel

# Linux has ignored this limit since 2.4 but hands it down through fork, exec and setsid, so it can carry a mark.
_RLIMIT_LOCKS = 10
_MARK = "Max file locks"
_PAUSE_SECONDS = 0.002
_PATIENCE_SECONDS = 5.0


def thread_count() -> int:
    """Return how many threads this process has; 1 where the kernel does not tell."""
    return len(os.listdir("/proc/self/task")) if kernel.IS_LINUX else 1


class ChildSignal:
    """Makes `poll` return when a child ends; one for each process that waits, in its only thread."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # the wake-up below needs a handler
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def fileno(self) -> int:
        """Return the descriptor to poll for reading."""
        return self._reader.fileno()

    def clear(self) -> None:
        """Forget the signals so far; call it before looking for ended children."""
        with suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass


def ended_children() -> Iterator[tuple[int, int, resource.struct_rusage]]:
    """Yield process id, wait status and use of each child that has ended; return when there are no more."""
    with suppress(ChildProcessError):
        while True:
            process, status, usage = os.wait4(-1, os.WNOHANG)
            if not process:
                return
            yield process, status, usage


def has_children(spared: Set[int] = frozenset()) -> bool:
    """Tell whether this process has a child, running or ended, other than the spared ones.

    Elsewhere than on Linux, orphans are not adopted: there are no others.
    """
    if not kernel.IS_LINUX:
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return not spared or bool(_children() - spared)


def kill_children(spared: Set[int] = frozenset()) -> None:
    """Kill every child of this process but the spared ones; theirs become children of this process in turn."""
    if kernel.IS_LINUX:
        for process in _children() - spared:
            _kill(process)


def mark(token: int) -> None:
    """Mark this process and all its descendants to be."""
    if kernel.IS_LINUX:
        resource.setrlimit(_RLIMIT_LOCKS, (token, resource.getrlimit(_RLIMIT_LOCKS)[1]))


def kill_marked(token: int) -> None:
    """Kill every process that carries the mark, until none is left or the kernel is too busy to let one go."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while kernel.IS_LINUX and (marked := _marked(token)) and time.monotonic() < deadline:
        for process in marked:
            _kill(process)
        time.sleep(_PAUSE_SECONDS)


def _marked(token: int) -> list[int]:
    return [process for process in _processes() if f" {token} " in _mark_line(process) and not _is_zombie(process)]


def _mark_line(process: int) -> str:
    lines = _read(process, "limits").splitlines()
    return next((line for line in lines if line.startswith(_MARK)), "")


def _is_zombie(process: int) -> bool:
    return _status(process)[:1] in (["Z"], ["X"], [])


def _children() -> set[int]:
    own = str(os.getpid())
    return {process for process in _processes() if _status(process)[1:2] == [own]}


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def _status(process: int) -> list[str]:
    """Return the fields of /proc/N/stat from the state on; empty if the process has gone."""
    return _read(process, "stat").rpartition(")")[2].split()


def _read(process: int, name: str) -> str:
    try:
        return Path(f"/proc/{process}/{name}").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def _kill(process: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)
