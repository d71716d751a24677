"""Ctrl-C before the command has begun."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("module", ["typer", "yaml", "sqlalchemy"])
def test_ctrl_c_during_the_first_imports_is_one_line(module: str, tmp_path: Path) -> None:
    """A module that sends the signal the moment it is imported stands in for a person's finger."""
    # What a shell starts in the background ignores the signal; the module answers it as a process of a terminal does.
    (tmp_path / f"{module}.py").write_text(
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "import time\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-m", "ftpipeline", "fsck"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stderr == "error: stopped; run again\n"
    assert done.stdout == ""
