"""The step's process: hardens itself, imports the step by name, runs it once and ends."""

import faulthandler
import importlib
import logging
import os
import resource
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ftpipeline import digest
from ftpipeline.engine.child import errors_across, kernel, landlock, observe, processes, seccomp
from ftpipeline.engine.child.findings import Findings
from ftpipeline.engine.child.levels import Level
from ftpipeline.engine.child.messages import LogMessages, Messages, ProgressMessages
from ftpipeline.engine.child.policy import Policy
from ftpipeline.engine.child.request import Work
from ftpipeline.engine.fingerprint.environment import cpu_flags, thread_settings
from ftpipeline.errors import StepDefinitionError
from ftpipeline.records import Facts

LOCATE_SIGNAL = signal.SIGUSR2 if not kernel.IS_LINUX else signal.SIGRTMAX - 1
"""The step's process writes down its stack when it gets this signal."""

_PACKAGE = os.path.dirname(__file__) + os.sep
_OOM_SCORE = "500"  # out of memory, the kernel takes the step before its caller
_FIRST_OTHER_DESCRIPTOR = 3


@dataclass(frozen=True)
class Channels:
    """The descriptors that a step's process is given.

    Attributes:
        stdout: becomes its standard output.
        stderr: becomes its standard error.
        messages: pipe for JSON lines.
        stacks: pipe for stacks that the warden asks for.
        warden: socket that the notification listener is handed over on.
    """

    stdout: int
    stderr: int
    messages: int
    stacks: int
    warden: socket.socket


def main(work: Work, policy: Policy, channels: Channels, parent: int) -> NoReturn:
    """Run the step in this process, which was just forked from `parent`, and end it."""
    code = 1
    try:
        kernel.end_with_parent(parent)
        messages = Messages(channels.messages)
        findings = Findings(policy)
        try:
            _harden(work, policy, findings, channels)
            told = {"facts": _run(work, messages)} | _surroundings()
        except BaseException as error:  # whatever it is, the caller must hear of it
            _lift_memory_limit()
            told = {"error": errors_across.describe(error, _is_shown, policy.is_first_party)}
        _flush()
        messages.send(told | {"findings": findings.report()})
        code = 0
    finally:
        os._exit(code)


def _harden(work: Work, policy: Policy, findings: Findings, channels: Channels) -> None:
    os.setpgid(0, 0)
    _reset_signals()
    _arrange_descriptors(channels)
    if kernel.IS_LINUX:
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    processes.mark(work.token)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _set_environment(work)
    observe.record_environment(work.hidden, policy, findings)
    sys.dont_write_bytecode = True  # the project is read-only here
    if work.level is Level.ENFORCED:
        _confine(policy, channels)
    else:
        channels.warden.close()
        observe.observe(policy, findings)
    if work.request.memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (work.request.memory_bytes, resource.RLIM_INFINITY))


def _reset_signals() -> None:
    """The zygote ignores what a terminal or a supervisor sends; a step answers as any program does."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _arrange_descriptors(channels: Channels) -> None:
    """Keep the channels, close everything else that was inherited."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (channels.stdout, 1), (channels.stderr, 2)):
        os.dup2(source, target)
    kept = sorted((channels.messages, channels.stacks, channels.warden.fileno()))
    start = _FIRST_OTHER_DESCRIPTOR
    for descriptor in kept:
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
    faulthandler.enable(file=2, all_threads=False)
    faulthandler.register(LOCATE_SIGNAL, file=channels.stacks, all_threads=True)


def _set_environment(work: Work) -> None:
    os.environ.clear()
    os.environ.update(work.environment)
    time.tzset()
    tempfile.tempdir = None  # the zygote may have looked for one already
    os.chdir(work.folder)


def _confine(policy: Policy, channels: Channels) -> None:
    landlock.confine(policy.grants)
    listener = seccomp.install()
    socket.send_fds(channels.warden, [b"\0"], [listener])
    os.close(listener)
    channels.warden.close()


def _run(work: Work, messages: Messages) -> Facts:
    request = work.request
    logging.getLogger().addHandler(LogMessages(messages))
    logging.getLogger().setLevel(logging.INFO)
    step = _load(request.step)
    ports: dict[str, Any] = {name: _load(port.target)(**port.arguments) for name, port in request.ports.items()}
    if request.shows_progress:
        ports["progress"] = ProgressMessages(messages)
    facts: Facts = step(request.inputs, request.params, request.out, **ports)
    if not isinstance(facts, dict):
        raise StepDefinitionError(f"step {request.step} returned {type(facts).__name__}; return a dict of facts")
    digest.canonical_json(facts)  # refused here, the error still has the step's name beside it
    return facts


def _load(target: str) -> Any:
    module, _, path = target.partition(":")
    if module == "__main__" or "<" in path:
        raise StepDefinitionError(f"{target} cannot be imported in another process; move it to the top of a module")
    value: Any = importlib.import_module(module)
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except AttributeError as error:
            raise StepDefinitionError(f"{target} does not exist; name it as 'module:name'") from error
    return value


def _surroundings() -> dict[str, Any]:
    return {"cpu_flags": list(cpu_flags()), "settings": thread_settings()}


def _lift_memory_limit() -> None:
    """Telling of a MemoryError takes memory."""
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _is_shown(file: str) -> bool:
    return not file.startswith((_PACKAGE, "<frozen importlib"))
