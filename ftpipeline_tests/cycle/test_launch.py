"""The launcher against real processes: small workers written into a folder of the module path."""

import os
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ftpipeline.cycle.launch import SubprocessLauncher
from ftpipeline.engine.fingerprint import code_fingerprint
from ftpipeline.errors import TrainingFailedError, WorkerError, WorkerInterruptedError
from ftpipeline.steps.ports import WorkerRequest

Write = Callable[[str], WorkerRequest]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Make a request for a worker module of the given source; its request file's path is `sys.argv[1]`."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    (tmp_path / "out").mkdir()

    def write(source: str) -> WorkerRequest:
        (tmp_path / "small_worker.py").write_text(textwrap.dedent(source))
        return WorkerRequest("small_worker", {"split": tmp_path / "split"}, {"lr": 0.5}, tmp_path / "out")

    return write


def test_a_worker_gets_its_request_and_its_progress_is_heard(worker: Write, tmp_path: Path) -> None:
    request = worker("""
        import json, pathlib, sys
        request = json.loads(pathlib.Path(sys.argv[1]).read_text())
        pathlib.Path(request["out"], "params").write_text(json.dumps(request["params"]))
        print(json.dumps({"progress": [1, 2, "half"]}))
    """)
    heard: list[tuple[int, int, str]] = []
    SubprocessLauncher().launch(request, lambda done, total, note: heard.append((done, total, note)))
    assert heard == [(1, 2, "half")]
    assert (tmp_path / "out" / "params").read_text() == '{"lr": 0.5}'


def test_a_verdict_is_raised_as_the_worker_said_it(worker: Write) -> None:
    request = worker("""
        import json, sys
        print(json.dumps({"error": {"type": "TrainingFailedError", "message": "loss is nan at step 3"}}))
        sys.exit(1)
    """)
    with pytest.raises(TrainingFailedError, match=r"^loss is nan at step 3$"):
        SubprocessLauncher().launch(request)


def test_a_crash_is_an_environment_problem_with_the_last_line_of_standard_error(
    worker: Write, caplog: pytest.LogCaptureFixture
) -> None:
    request = worker("raise MemoryError('no room')")
    with pytest.raises(WorkerError, match="exit code 1: MemoryError: no room"):
        SubprocessLauncher().launch(request)
    assert "Traceback" in caplog.text


def test_a_killed_worker_is_named_with_its_signal(worker: Write) -> None:
    with pytest.raises(WorkerError, match="SIGKILL"):
        SubprocessLauncher().launch(worker("import os; os.kill(os.getpid(), 9)"))


def test_exit_code_75_is_an_interruption(worker: Write) -> None:
    with pytest.raises(WorkerInterruptedError):
        SubprocessLauncher().launch(worker("import sys; sys.exit(75)"))


def test_much_standard_error_does_not_block_the_worker(worker: Write) -> None:
    SubprocessLauncher().launch(worker("import sys; sys.stderr.write('x' * 10**6)"))


def test_an_interrupt_stops_the_whole_process_group_before_it_goes_on(worker: Write, tmp_path: Path) -> None:
    request = worker(
        """
        import json, signal, subprocess, sys, time
        def stop(number, frame):
            open("out/stopped", "w").close()
            sys.exit(75)
        signal.signal(signal.SIGTERM, stop)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(json.dumps({"progress": [child.pid, 1, ""]}), flush=True)
        time.sleep(600)
    """.replace("out/stopped", str(tmp_path / "out" / "stopped"))
    )
    children: list[int] = []

    def interrupt(done: int, total: int, note: str) -> None:
        children.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SubprocessLauncher().launch(request, interrupt)
    assert (tmp_path / "out" / "stopped").exists()
    deadline = time.monotonic() + 1.0  # a killed process ends when the kernel next gets to it
    while _is_running(children[0]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(children[0])


def _is_running(pid: int) -> bool:
    """Tell whether a process exists and is more than a zombie that nobody has collected yet."""
    try:
        state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_worker_whose_code_is_not_the_keyed_one_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = code_fingerprint(["ftpipeline.weeks"])
    monkeypatch.setattr("ftpipeline.cycle.launch.code_fingerprint", lambda modules: keyed)
    request = WorkerRequest("ftpipeline.backends.train_worker", {}, {}, tmp_path)
    with pytest.raises(WorkerError, match="other code here than its step is keyed by"):
        SubprocessLauncher().launch(request)
