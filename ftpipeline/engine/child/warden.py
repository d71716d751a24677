"""The warden of one step: starts its process, hears its system calls, waits for it, and leaves nothing of it behind.

It is not confined. It ends the step when its caller hangs up, and it outlives the zygote.
"""

import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

from ftpipeline.engine.child import frames, kernel, processes, stepside
from ftpipeline.engine.child.findings import Findings
from ftpipeline.engine.child.levels import Level
from ftpipeline.engine.child.locator import Locator
from ftpipeline.engine.child.policy import Policy, policy_of
from ftpipeline.engine.child.recorder import Recorder
from ftpipeline.engine.child.request import Work, decode

_SWEEP_SECONDS = 0.02
_RSS_UNIT = 1024 if kernel.IS_LINUX else 1  # bytes in which the kernel counts the largest resident set


def main(caller: socket.socket, stdout: int, stderr: int, messages: int) -> NoReturn:
    """Serve one request in this process, which the zygote has just forked, and end it."""
    code = 1
    try:
        kernel.adopt_orphans()
        frames.send(caller, {"warden": os.getpid()})
        body = frames.receive(caller)
        if body is not None:
            _Warden(decode(body), caller).serve(stdout, stderr, messages)
        code = 0
    except BrokenPipeError:
        code = 0  # the caller has gone; what was left of the step is dead already
    except Exception as error:
        frames.send(caller, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        processes.kill_children()
        os._exit(code)


class _Warden:
    """Supervises one step."""

    def __init__(self, work: Work, caller: socket.socket) -> None:
        sys.path[:] = work.sys_path
        os.chdir(work.folder)
        self._work = work
        self._caller = caller
        self._policy: Policy = policy_of(work)
        self._findings = Findings(self._policy)
        self._recorder: Recorder | None = None
        self._children = processes.ChildSignal()
        self._step = 0
        self._ended: dict[str, Any] | None = None
        self._max_rss = 0
        self._cpu_seconds = 0.0

    def serve(self, stdout: int, stderr: int, messages: int) -> None:
        """Run the step to its end and report; or kill it because the caller hung up."""
        started = time.monotonic()
        self._start(stdout, stderr, messages)
        self._supervise()
        self._sweep()
        cost = {"max_rss_bytes": self._max_rss, "cpu_seconds": self._cpu_seconds}
        wall = {"wall_seconds": time.monotonic() - started}
        frames.send(self._caller, {**(self._ended or {}), **cost, **wall, "findings": self._findings.report()})

    def _start(self, stdout: int, stderr: int, messages: int) -> None:
        ours, theirs = socket.socketpair()
        stacks, written_stacks = os.pipe()
        os.set_blocking(written_stacks, False)  # a stack that does not fit is cut, and the step does not wait
        warden = os.getpid()
        self._step = os.fork()
        if not self._step:
            channels = stepside.Channels(stdout, stderr, messages, written_stacks, theirs)
            stepside.main(self._work, self._policy, channels, warden)
        for descriptor in (stdout, stderr, messages, written_stacks):
            os.close(descriptor)
        theirs.close()
        if self._work.level is Level.ENFORCED:
            self._await_listener(ours, stacks)
        ours.close()

    def _await_listener(self, channel: socket.socket, stacks: int) -> None:
        """A step that ends before it is confined hands nothing over; it has said why."""
        _, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
        if descriptors:
            locator = Locator(self._step, stepside.LOCATE_SIGNAL, stacks, self._policy.is_first_party)
            self._recorder = Recorder(descriptors[0], self._findings, locator)

    def _supervise(self) -> None:
        """Return when the step's process has ended, or has been killed because the caller hung up."""
        poller = select.poll()
        poller.register(self._caller, select.POLLIN)
        poller.register(self._children, select.POLLIN)
        if self._recorder is not None:
            poller.register(self._recorder, select.POLLIN)
        self._collect()
        while self._ended is None:
            for descriptor, event in poller.poll():
                self._attend(descriptor, event, poller)

    def _attend(self, descriptor: int, event: int, poller: select.poll) -> None:
        if descriptor == self._caller.fileno():  # it sends nothing more, so this is its end
            poller.unregister(descriptor)
            processes.kill_children()
            self._kill_group()
        elif descriptor == self._children.fileno():
            self._children.clear()
            self._collect()
        elif self._recorder is not None and event & select.POLLIN:
            self._recorder.hear()
        else:
            poller.unregister(descriptor)  # no process is left that the recorder could hear of

    def _collect(self) -> None:
        for process, status, usage in processes.ended_children():
            self._cpu_seconds += usage.ru_utime + usage.ru_stime
            self._max_rss = max(self._max_rss, usage.ru_maxrss * _RSS_UNIT)
            if process == self._step:
                code = os.waitstatus_to_exitcode(status)
                self._ended = {"exit": code if code >= 0 else None, "signal": -code if code < 0 else None}

    def _sweep(self) -> None:
        """Kill what the step has left running; each that dies leaves its children to this process."""
        self._kill_group()
        while processes.has_children():
            processes.kill_children()
            self._collect()
            select.select([self._children], [], [], _SWEEP_SECONDS)
            self._children.clear()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._step, signal.SIGKILL)
