"""The real command line: its entry point in this process, or the installed program in one of its own."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.cli.main import main
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store

# Set, though to nothing, so that what a run puts there is taken back.
_PLACES = dict.fromkeys(
    ("FTPIPELINE_HOME", "FTPIPELINE_STORE", "FTPIPELINE_DATABASE", "FTPIPELINE_PIPELINES", "DAGSTER_HOME"), ""
)


@dataclass(frozen=True)
class Outcome:
    """What a command left behind.

    Attributes:
        code: exit code.
        stdout: all of it.
        stderr: all of it.
    """

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The one strict JSON document that stdout holds."""
        return json.loads(self.stdout, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


@contextmanager
def named_places_only() -> Iterator[pytest.MonkeyPatch]:
    """Let the surroundings choose no place: homes are where a test says."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in _PLACES.items():
            patched.setenv(name, value)
        yield patched


@contextmanager
def open_home(home: Path) -> Iterator[Store]:
    """Open the home that commands were given with `--home`."""
    with named_places_only(), closing(Home(home).open()) as store:
        yield store


def ftpipeline(*arguments: object) -> Outcome:
    """Run a command in this process: seconds of imports are paid once a session."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with named_places_only() as patched, redirect_stdout(stdout), redirect_stderr(stderr):
        patched.setattr(sys, "argv", ["ftpipeline", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    return Outcome(int(ended.value.code or 0), stdout.getvalue(), stderr.getvalue())


def ftpipeline_program(*arguments: object) -> Outcome:
    """Run a command in a process of its own, as a shell does: what its children and libraries print is heard, too."""
    command = [sys.executable, "-m", "ftpipeline", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **_PLACES}, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)
