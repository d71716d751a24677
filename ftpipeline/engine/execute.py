"""Executing a missed step: inputs checked out, the step run where its kind says, what stands under `out` stored."""

import os
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.child import Level, PortSpec, StepHost, StepOutcome, StepRequest, best_level
from ftpipeline.engine.fingerprint.environment import cpu_flags, thread_settings
from ftpipeline.engine.folders import private_folder
from ftpipeline.engine.identity import Identity
from ftpipeline.engine.key import typed, untyped
from ftpipeline.errors import WorkerError
from ftpipeline.records import Facts, StepKind, StepObserver
from ftpipeline.store.opened import Store

UNCONFINED = "none"


@dataclass(frozen=True)
class Execution:
    """What an executed step left behind.

    Attributes:
        output: digest of the stored output.
        facts: what the step said.
        isolation: level it was confined at; `none` for a step that runs in this process.
        cpu_seconds: of the step and its children.
    """

    output: Digest
    facts: Facts
    isolation: str
    cpu_seconds: float


def execute(
    store: Store,
    observer: StepObserver,
    bound: BoundStep,
    identity: Identity,
    inputs: Mapping[str, Digest],
    params: Mapping[str, Any],
    level: Level | None,
) -> Execution:
    """Run a step and store its output; nothing of it stays behind if it fails.

    Args:
        store: where inputs are and the output goes.
        observer: hears progress and log lines.
        bound: the step with its ports.
        identity: what it is keyed by.
        inputs: input name to digest.
        params: its parameters.
        level: how well a pure step is confined; None for the best that the platform can do.
    """
    params = untyped(typed(params))  # in the order of the key: one key must not give two results
    with private_folder(store.home.scratch) as workspace:
        folders = {}
        for name, tree in inputs.items():
            folders[name] = workspace / "in" / name
            store.trees.checkout(tree, folders[name])
        out = workspace / "out"
        out.mkdir()
        if bound.step.kind is StepKind.PURE:
            request = _request(bound, identity, folders, params, out, caches_of(bound, store.home.cache))
            outcome = _host(os.getpid()).run(
                request, level=level if level is not None else best_level(), hear=_hearing(bound.step.name, observer)
            )
            _require_same_machine(bound.step.name, outcome)
            facts, isolation, spent = outcome.facts, str(outcome.level), outcome.cpu_seconds
        else:
            before = _cpu_seconds()
            facts, isolation = _here(bound, observer, folders, params, out), UNCONFINED
            spent = _cpu_seconds() - before
        return Execution(store.trees.put(out), facts, isolation, spent)


def _here(
    bound: BoundStep,
    observer: StepObserver,
    folders: Mapping[str, Path],
    params: Mapping[str, Any],
    out: Path,
) -> Facts:
    ports = bound.load_ports()
    if bound.shows_progress:
        name = bound.step.name
        ports["progress"] = lambda done, total, note="": observer.progress(name, done, total, note)
    return bound.step(folders, params, out, **ports)


@cache
def _host(process: int) -> StepHost:
    """The host of this process; a forked child has one of its own."""
    return StepHost()


def caches_of(bound: BoundStep, home: Path) -> dict[str, Path]:
    """Return the folders that a step declares to be faster with, those that are there."""
    folders = {name: home / name for name in bound.step.caches}
    return {name: folder for name, folder in folders.items() if folder.is_dir()}


def _request(
    bound: BoundStep,
    identity: Identity,
    folders: Mapping[str, Path],
    params: Mapping[str, Any],
    out: Path,
    caches: Mapping[str, Path],
) -> StepRequest:
    function = bound.step.function
    return StepRequest(
        step=f"{function.__module__}:{function.__qualname__}",
        inputs=folders,
        params=params,
        out=out,
        ports={name: PortSpec(port.target, port.arguments) for name, port in bound.ports.items()},
        reads=identity.reads,
        env=identity.variables,
        modules=identity.modules,
        shows_progress=bound.shows_progress,
        caches=caches,
    )


def _hearing(step: str, observer: StepObserver) -> Callable[[Mapping[str, Any]], None]:
    def hear(message: Mapping[str, Any]) -> None:
        if "progress" in message:
            observer.progress(step, *message["progress"])
        elif "log" in message:
            observer.said(step, *message["log"])

    return hear


def _require_same_machine(step: str, outcome: StepOutcome) -> None:
    """Refuse a result that was computed with other capabilities than those in its key."""
    mine = (tuple(cpu_flags()), dict(thread_settings()))
    if (outcome.cpu_flags, dict(outcome.settings)) != mine:
        raise WorkerError(
            f"step {step!r} saw another processor or other thread settings than its key names; "
            "let it read /proc/cpuinfo, and set the thread variables before the run starts"
        )


def _cpu_seconds() -> float:
    """CPU time of this process and of its ended children, in seconds."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
