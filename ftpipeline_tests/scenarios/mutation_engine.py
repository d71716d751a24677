"""Lays out the two sides of a row of the mutation matrix, and has each called in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from ftpipeline_tests.scenarios.mutation_rows import Row, Side

_ROOT = Path(__file__).parents[2]
_SERVER = "ftpipeline_tests.scenarios.mutation_process"
_PREPARE = """
import sys
from pathlib import Path
from ftpipeline.store.home import Home
Home(Path(sys.argv[1])).open().close()
"""


@dataclass(frozen=True)
class Processes:
    """A server that answers each request, a line of JSON, in a process that it forks.

    Attributes:
        server: the server.
    """

    server: "subprocess.Popen[str]"

    @classmethod
    @contextmanager
    def start(cls, command: Sequence[str]) -> Iterator["Processes"]:
        """Start the server and end it afterwards."""
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONPATH": str(_ROOT)}
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as server:
            assert server.stdin is not None
            yield cls(server)
            server.stdin.close()

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        answer: dict[str, Any] = json.loads(self.server.stdout.readline())
        return answer


@dataclass(frozen=True)
class Engine:
    """Runs rows through the engine.

    Attributes:
        processes: what runs the calls.
        empty: a home with an empty store.
    """

    processes: Processes
    empty: Path

    @classmethod
    @contextmanager
    def start(cls, folder: Path) -> Iterator["Engine"]:
        """Start an engine that keeps its empty home in `folder`."""
        subprocess.run([sys.executable, "-c", _PREPARE, str(folder / "home")], cwd=_ROOT, check=True)
        with Processes.start([sys.executable, "-m", _SERVER]) as processes:
            yield cls(processes, folder / "home")

    def run(self, row: Row, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
        """Return action, output and key of both calls of a row, laid out in `folder`."""
        shutil.copytree(self.empty, folder / "home")
        arrange(row.before, folder)
        before = self._call(row.before, folder)
        move(row, folder)
        arrange(row.after, folder)
        return before, self._call(row.after, folder)

    def _call(self, side: Side, folder: Path) -> dict[str, str]:
        request = {
            **request_for(side, folder),
            "step": "work:work",
            "inputs": {name: str(folder / side.project / place) for name, place in side.inputs.items()},
            **{name: getattr(side, name) for name in ("ports", "params", "machine")},
        }
        return self.processes.ask(request)


def request_for(side: Side, folder: Path) -> dict[str, Any]:
    """Return the part of a request that every tool needs."""
    project = folder / side.project
    path = [str(project), str(project / "env" / "site-packages")]
    return {"path": path, "env": side.env, "home": str(folder / "home")}


def move(row: Row, folder: Path) -> None:
    """Move the project's folder to where the second side has it."""
    if row.after.project != row.before.project:
        target = folder / row.after.project
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder / row.before.project, target)


def arrange(side: Side, folder: Path) -> None:
    """Make the project's folder hold exactly the files of a side; what is right is not touched."""
    project = folder / side.project
    for path in sorted(project.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and str(path.relative_to(project)) not in side.files:
            path.unlink()
    for relative, text in side.files.items():
        _write(project / relative, dedent(text).lstrip("\n"), side.times)


def _write(path: Path, text: str, times: int | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    if times is not None:
        os.utime(path, (times, times))
