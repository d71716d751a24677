"""The real command line: its entry point in this process, or the installed program in one of its own."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import pytest

from ftpipeline.cli.main import main

# Set, though to nothing, so that what a run puts there is taken back: the surroundings must choose no place.
_SURROUNDINGS = dict.fromkeys(
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


def ftpipeline(*arguments: object) -> Outcome:
    """Run a command in this process: seconds of imports are paid once a session."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(stdout), redirect_stderr(stderr):
        for name, value in _SURROUNDINGS.items():
            patched.setenv(name, value)
        patched.setattr(sys, "argv", ["ftpipeline", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    return Outcome(int(ended.value.code or 0), stdout.getvalue(), stderr.getvalue())


def ftpipeline_program(*arguments: object) -> Outcome:
    """Run a command in a process of its own, as a shell does: what its children and libraries print is heard, too."""
    command = [sys.executable, "-m", "ftpipeline", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **_SURROUNDINGS}, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)
