"""The launcher against real processes: small workers written into a folder of the module path."""

import json
import os
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ftpipeline.backends.outcome import JobJournal, Record
from ftpipeline.cycle.launch import SubprocessLauncher
from ftpipeline.engine.fingerprint import code_fingerprint
from ftpipeline.errors import (
    LeaseLostError,
    TrainingFailedError,
    UnknownNameError,
    WorkerError,
    WorkerInterruptedError,
)
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


class Notes(JobJournal):
    """A journal in memory that refuses from some step on."""

    checkpoint_steps = 5

    def __init__(self, refuse_from: int = 10**9) -> None:
        self.refuse_from = refuse_from
        self.steps: list[int] = []
        self.checkpoints: list[int] = []
        self.asked = 0

    def open(self, place: Path) -> Path | None:
        return None

    def metric(self, record: Record) -> None:
        if record["step"] >= self.refuse_from:
            raise LeaseLostError("lease of job j was lost; nothing was written; run again")
        self.steps.append(record["step"])

    def evaluation(self, record: Record) -> None:
        self.metric(record)

    def checkpoint(self, record: Record, folder: Path) -> None:
        assert (folder / "weights").exists()
        self.checkpoints.append(record["step"])

    def consume(self, record: Record, place: Path) -> Path | None:
        self.asked += 1
        if record["job"] == "nobody":
            raise UnknownNameError("job nobody is not in the ledger")
        return place / record["job"] if self.asked > 1 else None


TALKER = """
    import json, pathlib, signal, sys, time
    request = json.loads(pathlib.Path(sys.argv[1]).read_text())
    exchange = pathlib.Path(request["exchange"])
    def say(message):
        print(json.dumps(message), flush=True)
    def save(step):
        folder = exchange / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "weights").write_text("w")
        say({"checkpoint": {"step": step, "epoch": 1.0, "folder": folder.name}})
    def stop(number, frame):
        save(99)
        sys.exit(75)
    signal.signal(signal.SIGTERM, stop)
    def ask(ticket, job):
        say({"consume": {"ticket": ticket, "use": "merge", "job": job, "step": 1, "at_step": 2}})
        answer = exchange / f"answer-{ticket}.json"
        while not answer.exists():
            time.sleep(0.01)
        return json.loads(answer.read_text())
"""


def talker(rest: str) -> str:
    return textwrap.dedent(TALKER) + textwrap.dedent(rest)


def test_what_a_worker_says_is_kept_and_a_kept_checkpoint_is_removed(worker: Write, tmp_path: Path) -> None:
    request = worker(
        talker("""
        for step in (1, 2, 3):
            say({"metric": {"step": step}})
        save(3)
        say({"evaluation": {"step": 4}})
        while (exchange / "checkpoint-3").exists():
            time.sleep(0.01)
    """)
    )
    notes = Notes()
    SubprocessLauncher(journal=notes).launch(request)
    assert (notes.steps, notes.checkpoints) == ([1, 2, 3, 4], [3])


def test_a_journal_that_refuses_stops_the_worker_and_its_error_is_the_steps(worker: Write) -> None:
    request = worker(
        talker("""
        for step in range(1, 10**6):
            say({"metric": {"step": step}})
            time.sleep(0.01)
    """)
    )
    notes = Notes(refuse_from=4)
    with pytest.raises(LeaseLostError):
        SubprocessLauncher(journal=notes).launch(request)
    assert (notes.steps, notes.checkpoints) == ([1, 2, 3], [])  # nothing is kept of it any more


def test_an_interrupt_still_hears_the_workers_last_words(worker: Write) -> None:
    request = worker(
        talker("""
        say({"progress": [1, 2, ""]})
        time.sleep(600)
    """)
    )

    def interrupt(done: int, total: int, note: str) -> None:
        raise KeyboardInterrupt

    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        SubprocessLauncher(journal=notes).launch(request, interrupt)
    assert notes.checkpoints == [99]


def test_a_worker_that_ignores_the_request_to_stop_is_killed(worker: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftpipeline.cycle.launch._GRACE_SECONDS", 0.5)
    request = worker(
        talker("""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say({"metric": {"step": 1}})
        time.sleep(600)
    """)
    )
    with pytest.raises(LeaseLostError):
        SubprocessLauncher(journal=Notes(refuse_from=1)).launch(request)


def test_a_question_is_answered_with_a_folder_a_wait_or_the_reason_why_not(worker: Write, tmp_path: Path) -> None:
    request = worker(
        talker("""
        answers = [ask(1, "other"), ask(2, "other"), ask(3, "nobody")]
        pathlib.Path(request["out"], "answers").write_text(json.dumps(answers))
    """)
    )
    SubprocessLauncher(journal=Notes()).launch(request)
    waiting, folder, refusal = json.loads((tmp_path / "out" / "answers").read_text())
    assert waiting == {"pending": True}
    assert folder["folder"].endswith("/exchange/other")
    assert refusal["error"]["type"] == "UnknownNameError"


def test_a_checkpoint_outside_the_exchange_is_refused(worker: Write) -> None:
    request = worker(talker('say({"checkpoint": {"step": 3, "epoch": 1.0, "folder": "../../x"}})'))
    with pytest.raises(WorkerError, match="unknown form"):
        SubprocessLauncher(journal=Notes()).launch(request)
