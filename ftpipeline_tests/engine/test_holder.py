"""Who holds a lease: only a process that is known to have ended is called gone."""

import os
import subprocess
import sys

import pytest

from ftpipeline.engine.holder import is_gone, this_process
from ftpipeline_tests.orchestration.servers import needs_proc

pytestmark = needs_proc
_SAY = "from ftpipeline.engine.holder import this_process; print(this_process(), flush=True); input()"


def ended() -> str:
    """Return the text of a process that has ended, and whose parent has heard of it."""
    done = subprocess.run([sys.executable, "-c", _SAY], input="\n", capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_this_process_is_not_gone_and_no_two_texts_are_alike() -> None:
    assert not is_gone(this_process())
    assert this_process() != this_process()


def test_a_process_that_has_ended_is_gone() -> None:
    assert is_gone(ended())


def test_a_killed_process_is_gone_before_its_parent_hears_of_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        holder = process.stdout.readline().strip()
        assert not is_gone(holder)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(holder)


def test_a_pid_that_was_given_out_again_does_not_keep_its_former_process_alive() -> None:
    host, pid, machine, start, token = this_process().split(":")
    assert is_gone(":".join((host, pid, machine, str(int(start) - 1), token)))


@pytest.mark.parametrize("place", [0, 2])
def test_nothing_is_known_of_processes_elsewhere(place: int) -> None:
    parts = ended().split(":")
    parts[place] = "elsewhere"
    assert not is_gone(":".join(parts))


@pytest.mark.parametrize("holder", ["", "somebody", "host:1:2", "host:pid:machine:1:token"])
def test_nothing_is_known_of_a_holder_that_is_no_process_of_this_kind(holder: str) -> None:
    assert not is_gone(holder)
