"""The caller's side: a zygote for this process, and one call of a step through it."""

import atexit
import os
import secrets
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ftpipeline.engine.child import levels
from ftpipeline.engine.child.call import Call
from ftpipeline.engine.child.levels import Level
from ftpipeline.engine.child.request import StepOutcome, StepRequest, Work, encode
from ftpipeline.engine.child.verdict import conclude
from ftpipeline.engine.child.zygote_process import ZygoteProcess
from ftpipeline.engine.fingerprint.environment import thread_settings
from ftpipeline.engine.folders import private_folder
from ftpipeline.errors import WorkerError

Hear = Callable[[Mapping[str, Any]], None]
"""Hears `{"progress": [done, total, note]}` and `{"log": [level, text]}` while a step runs."""

CACHE_VARIABLE = "FTPIPELINE_CACHE_"
"""What the variable is called that names a cache's folder to the step, before the cache's own name."""

# Not the caller's: the zone and language of a machine, and what a user keeps at home, are in no key.
_FIXED_VARIABLES = {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
# Libraries that call home in the background would be taken for a step that uses the network.
_NO_TELEMETRY = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "ORT_DISABLE_TELEMETRY": "1",
}
_ATTEMPTS = 2
_TOKEN_BITS = 62


class StepHost:
    """Runs steps in processes of their own; made once in a process, and usable from all its threads.

    Nothing is started before the first step; everything ends with this process, however it ends.

    Args:
        preload: modules of installed distributions that steps are to find loaded. That saves their import in each
            step, and fixes linear algebra to one thread.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._preload = tuple(preload)
        self._lock = threading.Lock()
        self._zygote: ZygoteProcess | None = None

    def run(self, request: StepRequest, *, level: Level, hear: Hear) -> StepOutcome:
        """Run one step to its end.

        Whatever ends this call - a result, an error, an interrupt - every process of the step has ended by then.

        Args:
            request: what to run.
            level: how well to confine it.
            hear: called in this thread while the step runs.

        Raises:
            StepDefinitionError: the step used something that it does not declare, cannot be imported by name, or raised
                an error of a class that is not known here.
            WorkerError: the platform cannot do `level`, or the step's process was killed or ended without a result.
            Exception: whatever else the step raised, if it is an error of this package or of Python itself.
        """
        levels.require(level)
        with private_folder(request.out.resolve().parent, ".scratch-") as scratch:
            work = _work(request, level, scratch)
            document = encode(work)
            for attempt in range(_ATTEMPTS):
                with Call(work.token, hear) as call:
                    if self._hand_over(call, fresh=attempt > 0):
                        return conclude(work, *call.converse(document))
        raise WorkerError(f"step {request.step} could not be started: its zygote ends by itself; see standard error")

    def close(self) -> None:
        """End the zygote; a later run starts another."""
        with self._lock:
            if self._zygote is not None:
                self._zygote.close()
                self._zygote = None

    def _hand_over(self, call: Call, fresh: bool) -> bool:
        """Return whether a warden took the call; the zygote may have been killed."""
        with self._lock:
            if self._zygote is None or fresh or not self._zygote.is_usable():
                self._start()
            return self._zygote is not None and self._zygote.send(call) and call.is_taken()

    def _start(self) -> None:
        if self._zygote is None:
            atexit.register(self.close)
        else:
            self._zygote.close()
            self._zygote = None
        self._zygote = ZygoteProcess(self._preload, _base_environment())


def _work(request: StepRequest, level: Level, scratch: Path) -> Work:
    private = {"TMPDIR": str(scratch), "HOME": str(scratch)}
    caches = {f"{CACHE_VARIABLE}{name.upper()}": str(path) for name, path in request.caches.items()}
    environment = _base_environment() | private | dict(request.env) | caches
    return Work(
        request=request,
        level=level,
        scratch=scratch,
        folder=Path.cwd(),
        sys_path=tuple(os.path.abspath(entry) for entry in sys.path),
        environment=environment,
        hidden=frozenset(os.environ) - set(environment),
        token=secrets.randbits(_TOKEN_BITS) | 1,
    )


def _base_environment() -> dict[str, str]:
    """What every step gets; the settings of thread pools change results, so they are in the step key."""
    names = ("PATH", *thread_settings())
    return _FIXED_VARIABLES | _NO_TELEMETRY | {name: os.environ[name] for name in names if name in os.environ}
