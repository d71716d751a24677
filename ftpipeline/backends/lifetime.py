"""How a worker process ends before its work does: asked to by a signal, or because its launcher is gone."""

import ctypes
import os
import signal
import sys
import threading
import time
from types import FrameType

from ftpipeline.backends.protocol import EXIT_INTERRUPTED
from ftpipeline.errors import WorkerInterruptedError

_POLL_SECONDS = 0.5
_GRACE_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


class StopRequest:
    """Remembers SIGINT and SIGTERM, so that the work stops at a boundary and never in the middle of a write."""

    def __init__(self) -> None:
        self._signal: signal.Signals | None = None
        self.kept = "nothing is kept"
        """What there is to go on from, for the message."""

    def listen(self) -> None:
        """Take both signals from now on; call it in the main thread before anything slow is imported."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.remember)

    def remember(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal: remember it until the next boundary."""
        self._signal = signal.Signals(number)

    @property
    def requested(self) -> bool:
        """Tell whether a signal has come."""
        return self._signal is not None

    def check(self, where: str) -> None:
        """Return unless a signal has come.

        Args:
            where: the boundary that has been reached, for the message.

        Raises:
            WorkerInterruptedError: the worker was asked to stop.
        """
        if self._signal is not None:
            raise WorkerInterruptedError(f"training stopped by {self._signal.name} {where}; {self.kept}, run again")


def end_with(parent: int) -> None:
    """End this process when the process `parent` that started it ends, so that no orphan trains on.

    A thread polls the parent's id; on Linux the kernel also sends SIGTERM when the thread that started this one ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(EXIT_INTERRUPTED)  # no boundary was reached in time; nobody is left to wait for one
