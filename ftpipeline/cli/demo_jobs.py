"""Weekly runs of several pipelines at once, each in a process of its own as a shell would start it."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ftpipeline.cli.common import stderr
from ftpipeline.errors import WorkerError
from ftpipeline.store.home import Home

_PATIENCE_SECONDS, _POLL_SECONDS = 600.0, 0.2


@dataclass
class Jobs:
    """Weekly runs in processes of their own, at once.

    Attributes:
        files: pipeline files by name.
        home: where everything is kept.
        week: ISO week that all of them run.
        processes: those that were started, by name.
    """

    files: Mapping[str, Path]
    home: Home
    week: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start a job; what it says goes to a file beside its pipeline."""
        arguments = ["run", str(self.files[name]), "--week", self.week, "--home", str(self.home.root), "--json"]
        with self._log(name).open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "ftpipeline", *arguments], stdout=subprocess.DEVNULL, stderr=log
            )
        stderr.print(f"started {name}", markup=False)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds that the jobs bring about.

        Raises:
            WorkerError: one of them failed first, or it took too long.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not holds():
            for name, process in self.processes.items():
                if process.poll() not in (None, 0, 1):
                    raise WorkerError(f"{name} ended before {what}: {self._last_words(name)}")
            if time.monotonic() > deadline:
                logs = self._log(next(iter(self.files))).parent
                raise WorkerError(f"waited {_PATIENCE_SECONDS:.0f} s for {what} in vain; the jobs' logs are in {logs}")
            time.sleep(_POLL_SECONDS)

    def wait(self) -> None:
        """Wait for the ends: those that are not tainted end well, the others are halted."""
        for process in self.processes.values():
            process.wait()

    def stop(self) -> None:
        """End what still runs, in order."""
        for process in self.processes.values():
            process.terminate()
        self.wait()

    def _log(self, name: str) -> Path:
        return self.files[name].with_suffix(".log")

    def _last_words(self, name: str) -> str:
        return self._log(name).read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]


@contextmanager
def running(files: Mapping[str, Path], home: Home, week: str) -> Iterator[Jobs]:
    """Yield jobs to start; at the end of the block none of them runs any more."""
    jobs = Jobs(files, home, week)
    try:
        yield jobs
    finally:
        jobs.stop()
