import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ftpipeline.engine.child import Level
from ftpipeline.engine.child.exec_spec import ExecSpec
from ftpipeline_tests.engine.child.conftest import enforced
from ftpipeline_tests.engine.child.watching import gone, wait_for

_SHOW_VARIABLES = "import os; print(*sorted(os.environ))"


def _run(spec: ExecSpec, folder: Path, *program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = spec.command(folder / "spec.json", [sys.executable, "-c", *program])
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", check=False)


def test_only_declared_variables_and_those_of_a_pipes_session_are_kept(level: Level, tmp_path: Path) -> None:
    spec = ExecSpec(level, env=("DECLARED",))
    done = _run(spec, tmp_path, _SHOW_VARIABLES, DECLARED="1", DAGSTER_PIPES_CONTEXT="x", SECRET_SETTING="2")
    assert done.returncode == 0, done.stderr
    assert {"DECLARED", "DAGSTER_PIPES_CONTEXT", "PATH"} <= set(done.stdout.split())
    assert "SECRET_SETTING" not in done.stdout


@enforced
def test_the_program_reads_and_writes_what_is_granted_and_nothing_else(tmp_path: Path) -> None:
    granted, denied, out = tmp_path / "granted", tmp_path / "denied", tmp_path / "out"
    for file in (granted, denied):
        file.write_text("text")
    out.mkdir()
    spec = ExecSpec(Level.ENFORCED, reads=(str(granted),), writes=(str(out),))
    copy = f"open('{out}/copy', 'w').write(open('{granted}').read()); open('{denied}')"
    done = _run(spec, tmp_path, copy)
    assert (out / "copy").read_text() == "text"
    assert done.returncode == 1
    assert "PermissionError" in done.stderr


@enforced
@pytest.mark.parametrize("granted", [True, False])
def test_the_program_connects_to_granted_ports_only(tmp_path: Path, granted: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        spec = ExecSpec(Level.ENFORCED, tcp_ports=(port,) if granted else ())
        done = _run(spec, tmp_path, f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)")
    assert (done.returncode == 0) is granted, done.stderr


_STARTER = """
import os, subprocess, sys
from pathlib import Path
from ftpipeline.engine.child import Level
from ftpipeline.engine.child.exec_spec import ExecSpec

command = ExecSpec(Level(sys.argv[1])).command(Path(sys.argv[2]), ["sh", "-c", "echo up; exec sleep 300"])
program = subprocess.Popen(command, stdout=subprocess.PIPE)
program.stdout.readline()
print(program.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_the_program_ends_with_the_one_that_started_it(level: Level, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTER, level, str(tmp_path / "spec.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    program = int(done.stdout)
    wait_for(lambda: gone((program,)))


@pytest.mark.parametrize("arguments", [[], ["spec.json"], ["spec.json", "sleep", "1"]])
def test_wrong_use_is_one_line_and_exit_code_3(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "ftpipeline.engine.child.exec_wrapper", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("usage:")
    assert done.stderr.count("\n") == 1
