"""Workers as plain subprocesses of this one."""

import logging
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ftpipeline.backends.protocol import WorkerOutcome, command, write_request
from ftpipeline.errors import WorkerError
from ftpipeline.steps.ports import Launcher, Progress, WorkerRequest

_GRACE_SECONDS = 10.0

_log = logging.getLogger(__name__)


class SubprocessLauncher(Launcher):
    """Runs a worker in a process group of its own, so that a keyboard's Ctrl-C reaches it only through this process."""

    def _launch(self, request: WorkerRequest, progress: Progress) -> None:
        outcome = WorkerOutcome(request.module, progress)
        with tempfile.TemporaryDirectory(prefix="ftpipeline-launch-") as folder:
            request_file, stderr_file = Path(folder, "request.json"), Path(folder, "stderr.txt")
            write_request(request, request_file)
            with self._session(outcome) as variables:
                returncode = _run(command(request, request_file), {**os.environ, **variables}, stderr_file, outcome)
            said = stderr_file.read_text(encoding="utf-8", errors="replace").strip()
        try:
            outcome.raise_unless_good(returncode, said.rpartition("\n")[2])
        except WorkerError:
            _log.warning("standard error of worker %s:\n%s", request.module, said)
            raise

    @contextmanager
    def _session(self, outcome: WorkerOutcome) -> Iterator[Mapping[str, str]]:
        """Whatever must be open while the worker runs; yields the environment variables that tell the worker of it."""
        yield {}


def _run(arguments: list[str], environment: Mapping[str, str], stderr_file: Path, outcome: WorkerOutcome) -> int:
    """Hear the worker to its end and return its exit code; whatever interrupts this ends the worker too."""
    with (
        stderr_file.open("wb") as stderr,
        subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            process_group=0,
        ) as process,
    ):
        try:
            for line in process.stdout or ():
                outcome.hear_line(line)
            return process.wait()
        except BaseException:
            _stop(process)
            raise


def _stop(process: subprocess.Popen[str]) -> None:
    """Ask the worker's process group to stop, and kill what is left of it after the grace time."""
    try:
        _signal_group(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    finally:  # also when a second Ctrl-C ends the wait
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # the whole group has ended by itself
        os.killpg(process.pid, number)
