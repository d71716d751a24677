"""Workers as subprocesses of this one, behind the wall of a confined step."""

import logging
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import ftpipeline
from ftpipeline.backends.outcome import JobJournal, WorkerOutcome
from ftpipeline.backends.protocol import command, write_request
from ftpipeline.engine.child import Level, best_level
from ftpipeline.engine.child.exec_spec import ExecSpec
from ftpipeline.engine.fingerprint import code_fingerprint
from ftpipeline.engine.fingerprint.environment import thread_settings
from ftpipeline.errors import WorkerError
from ftpipeline.steps.ports import Launcher, Progress, WorkerRequest

_GRACE_SECONDS = 10.0
_CODE = Path(ftpipeline.__file__).parent
_KEPT_VARIABLES = ("TMPDIR", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "FTPIPELINE_TORCH_THREADS")

_log = logging.getLogger(__name__)


class SubprocessLauncher(Launcher):
    """Runs a worker in a process group of its own, so that a keyboard's Ctrl-C reaches it only through this process.

    Args:
        level: how well the worker is confined; the best that the platform can do unless given.
        journal: keeps what the worker does and what it can go on from; without one, nothing outlives the launch.
    """

    def __init__(self, level: Level | None = None, journal: JobJournal | None = None) -> None:
        self._level = level if level is not None else best_level()
        self._journal = journal

    def _launch(self, request: WorkerRequest, progress: Progress) -> None:
        with tempfile.TemporaryDirectory(prefix="ftpipeline-launch-") as name:
            folder = Path(name)
            request = _opened(request, self._journal, folder)
            outcome = WorkerOutcome(request, progress, self._journal)
            stderr_file = folder / "stderr.txt"
            with self._session(outcome, folder) as variables:
                environment = {**os.environ, **variables, "TMPDIR": name}
                returncode = _run(_walled(request, folder, self._level), environment, stderr_file, outcome)
            said = stderr_file.read_text(encoding="utf-8", errors="replace").strip()
        try:
            outcome.raise_unless_good(returncode, said.rpartition("\n")[2])
        except WorkerError:
            _log.warning("standard error of worker %s:\n%s", request.module, said)
            raise

    @contextmanager
    def _session(self, outcome: WorkerOutcome, folder: Path) -> Iterator[Mapping[str, str]]:
        """Whatever must be open while the worker runs; yields the environment variables that tell the worker of it.

        Args:
            outcome: hears the worker's messages.
            folder: of this launch; the worker may read and write there.
        """
        yield {}


def _opened(request: WorkerRequest, journal: JobJournal | None, folder: Path) -> WorkerRequest:
    """Open the job in its journal; the request then says where checkpoints go and which one to go on from."""
    if journal is None:
        return request
    exchange = folder / "exchange"
    exchange.mkdir()
    resume = journal.open(folder / "resume")
    return replace(request, exchange=exchange, resume=resume, checkpoint_steps=journal.checkpoint_steps)


def _walled(request: WorkerRequest, folder: Path, level: Level) -> list[str]:
    """Return the command that runs the worker with its inputs to read, its output to write, and nothing else."""
    request_file = folder / "request.json"
    write_request(request, request_file)
    wall = ExecSpec(
        level=level,
        reads=(str(_CODE), *_python_path(), *(str(path) for path in request.inputs.values())),
        writes=(str(request.out), str(folder)),
        env=(*_KEPT_VARIABLES, *thread_settings()),
        module=request.module,
        code=code_fingerprint([request.module]).digest,
    )
    return wall.command(folder / "wall.json", command(request, request_file))


def _python_path() -> list[str]:
    """Return the folders of PYTHONPATH: code that the worker may import, as this process may."""
    return [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


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
        _stopped_at_the_end(process) as stop,
    ):
        outcome.on_refusal = stop
        try:
            return _hear(process, outcome)
        except BaseException:
            stop()
            outcome.mute()
            _hear(process, outcome)  # its last checkpoint is among its last words
            raise


def _hear(process: subprocess.Popen[str], outcome: WorkerOutcome) -> int:
    for line in process.stdout or ():
        outcome.hear_line(line)
    return process.wait()


@contextmanager
def _stopped_at_the_end(process: subprocess.Popen[str]) -> Iterator[Callable[[], None]]:
    """Yield what asks the worker's process group to stop and has what is left of it killed after the grace time.

    At the end of the block nothing of the group is left, also when a second Ctrl-C cuts the waiting short.
    """
    killer = threading.Timer(_GRACE_SECONDS, _signal_group, (process, signal.SIGKILL))
    killer.daemon = True

    def stop() -> None:
        if not killer.ident:
            killer.start()
            _signal_group(process, signal.SIGTERM)

    try:
        yield stop
    finally:
        killer.cancel()
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # the whole group has ended by itself
        os.killpg(process.pid, number)
