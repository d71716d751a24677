import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.engine.child import Level, StepHost
from ftpipeline.errors import WorkerError
from ftpipeline_tests.engine.child.conftest import Runs, enforced
from ftpipeline_tests.engine.child.watching import Ids, gone, ids_in, is_alive, wait_for

_PATIENCE_SECONDS = 20.0
_WAITS = {"waits": True}


class Background:
    """A step that runs in a thread, and how it ended."""

    def __init__(self, run: Runs, level: Level) -> None:
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, args=(run, level))
        self._thread.start()
        self.ids = ids_in(run.out)

    def _serve(self, run: Runs, level: Level) -> None:
        try:
            run("leaves_processes_and_waits", _WAITS, level)
        except WorkerError as error:
            self.error = error

    def join(self) -> None:
        """Wait for the end of the call."""
        self._thread.join(_PATIENCE_SECONDS)
        assert not self._thread.is_alive()


def test_nothing_of_an_ended_step_is_left(run: Runs, level: Level) -> None:
    run("leaves_processes_and_waits", {"waits": False}, level)
    step, child, detached, _ = map(int, (run.out / "pids").read_text().split())
    wait_for(lambda: gone((step, child, detached)))


def test_a_killed_step_leaves_nothing_and_its_signal_is_named(run: Runs, level: Level) -> None:
    background = Background(run, level)
    os.kill(background.ids.step, signal.SIGKILL)
    background.join()
    assert "killed by SIGKILL" in str(background.error)
    wait_for(lambda: gone(background.ids.own))


def test_a_killed_warden_leaves_nothing(run: Runs, level: Level) -> None:
    background = Background(run, level)
    os.kill(background.ids.warden, signal.SIGKILL)
    background.join()
    assert "warden of the step was killed" in str(background.error)
    wait_for(lambda: gone(background.ids.own))


def test_a_warden_killed_after_its_zygote_leaves_nothing(run: Runs, level: Level) -> None:
    background = Background(run, level)
    os.kill(background.ids.zygote, signal.SIGKILL)
    wait_for(lambda: not is_alive(background.ids.zygote))
    assert is_alive(background.ids.step)
    os.kill(background.ids.warden, signal.SIGKILL)
    background.join()
    wait_for(lambda: gone(background.ids.own))


def test_a_step_outlives_its_zygote_and_the_next_gets_a_new_one(run: Runs, tmp_path: Path) -> None:
    background = Background(run, Level.OBSERVED)
    os.kill(background.ids.zygote, signal.SIGKILL)
    assert Runs(run.host, tmp_path / "next")("works_in_scratch", level=Level.OBSERVED).facts == {"entries": ["a"]}
    assert is_alive(background.ids.step)
    os.kill(background.ids.step, signal.SIGKILL)
    background.join()
    wait_for(lambda: gone(background.ids.own))


def test_a_killed_caller_leaves_nothing(level: Level, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ftpipeline_tests.engine.child.caller", str(tmp_path), level]
    with subprocess.Popen(command) as caller:
        ids = ids_in(tmp_path / "work" / "out")
        caller.kill()
    wait_for(lambda: gone((*ids.own, ids.zygote)))


def test_signals_of_a_terminal_reach_neither_zygote_nor_warden(run: Runs) -> None:
    background = Background(run, Level.OBSERVED)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(background.ids.zygote, number)
        os.kill(background.ids.warden, number)
    os.kill(background.ids.step, signal.SIGTERM)
    background.join()
    assert "killed by SIGTERM" in str(background.error)
    assert is_alive(background.ids.zygote)


class Interrupted(BaseException):
    """What a signal handler of the host raises."""


def test_an_interrupted_call_leaves_nothing(run: Runs, level: Level) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)

    def raise_alarm() -> None:
        found.append(ids_in(run.out))
        os.kill(os.getpid(), signal.SIGALRM)

    found: list[Ids] = []
    alarm = threading.Thread(target=raise_alarm)
    alarm.start()
    try:
        with pytest.raises(Interrupted):
            run("leaves_processes_and_waits", _WAITS, level)
    finally:
        signal.signal(signal.SIGALRM, before)
        alarm.join()
    wait_for(lambda: gone(found[0].own))
    assert [path.name for path in run.out.parent.iterdir()] == ["out"]


def test_an_error_of_the_hearer_ends_the_step(run: Runs) -> None:
    def refuse(message: Mapping[str, Any]) -> None:
        raise RuntimeError("nobody listens")

    with pytest.raises(RuntimeError, match="nobody listens"):
        run.host.run(run.request("talks", shows_progress=True), level=Level.OBSERVED, hear=refuse)


@enforced
def test_a_closed_host_leaves_no_zygote_and_starts_another(tmp_path: Path) -> None:
    host = StepHost()
    run = Runs(host, tmp_path)
    run("works_in_scratch")
    host.close()
    host.close()
    assert run("works_in_scratch").facts == {"entries": ["a"]}
    host.close()
