"""The zygote as its caller sees it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import ftpipeline
from ftpipeline.engine.child import frames
from ftpipeline.engine.child.call import Call
from ftpipeline.errors import WorkerError

_MODULE = "ftpipeline.engine.child.zygote"
_PATIENCE_SECONDS = 5.0
# Thread pools that start when their library is imported: a process with threads cannot be forked safely.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
# A step's sets must not be in another order tomorrow.
_FIXED_HASHES = {"PYTHONHASHSEED": "0"}


class ZygoteProcess:
    """A running zygote.

    Args:
        preload: modules that it imports beforehand.
        environment: its environment variables.

    Raises:
        WorkerError: it did not start, or a module that it imported started a thread.
    """

    def __init__(self, preload: Sequence[str], environment: Mapping[str, str]) -> None:
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = self._spawn(theirs, preload, environment)
        try:
            self._await_ready(preload)
        except BaseException:
            self.close()
            raise

    def is_usable(self) -> bool:
        """Tell whether the zygote runs and is this process's own, not that of a process it was forked from."""
        return self._owner == os.getpid() and self._process.poll() is None

    def send(self, call: Call) -> bool:
        """Hand over a call's descriptors; return False if the zygote has gone."""
        try:
            socket.send_fds(self._control, [b"\0"], call.descriptors())
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def close(self) -> None:
        """Hang up, and wait for the zygote to end."""
        self._control.close()
        if self._owner != os.getpid():
            self._process.returncode = 0  # another process's child: not for this one to wait for
            return
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def _spawn(
        self, theirs: socket.socket, preload: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        own_place = str(Path(ftpipeline.__file__).parent.parent)
        variables = {**_ONE_THREAD, **environment, **_FIXED_HASHES, "PYTHONPATH": own_place}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()), *preload],
            pass_fds=[theirs.fileno()],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a terminal's Ctrl-C is for the caller to answer
        )

    def _await_ready(self, preload: Sequence[str]) -> None:
        answer = frames.receive(self._control)
        if answer is None:
            raise WorkerError(f"the zygote of {sys.executable} did not start; see its message on standard error")
        threads = json.loads(answer)["threads"]
        if threads != 1:
            raise WorkerError(
                f"the zygote has {threads} threads after importing {', '.join(preload)}; "
                "take the module that starts one off the preload list"
            )
