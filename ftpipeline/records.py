"""The frozen values that the floors of the package exchange."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from ftpipeline.digest import Digest
from ftpipeline.errors import StepDefinitionError

Facts = dict[str, Any]
"""What a step tells people, and the steps after it, about what it did: a JSON object, finite numbers only."""


class StepKind(StrEnum):
    """How a step is run and keyed (contract C4)."""

    PURE = "pure"
    """Reads its inputs and parameters only."""
    SOURCE = "source"
    """May read the outside world; keyed by query or revision, window and cut; its frozen result is never recomputed."""
    LAUNCHED = "launched"
    """Runs its work in a worker process behind a launcher port."""


@dataclass(frozen=True)
class Step:
    """A step function with what the engine must know to key it.

    Attributes:
        name: the step's name in keys, lineage and the command line.
        code_version: declared version of the code; change it when the result changes.
        kind: how the step is run.
        function: `function(inputs, params, out, **ports) -> Facts`; `inputs` maps input names to read-only folders,
            `out` is an empty folder whose content becomes the step's output.
        distributions: names of distributions whose versions shape the result, beside those that the code imports.
        reads: files that the step may read beside its inputs, relative to the folder of its module; keyed by content.
        env: environment variables that the step may read; keyed by value.
        caches: names of folders that the step may read and that make it faster, such as compiled code; nothing in them
            changes a result, so they are in no key. `FTPIPELINE_CACHE_<NAME>` is the folder, where it is there.
    """

    name: str
    code_version: str
    kind: StepKind
    function: Callable[..., Facts]
    distributions: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()

    def __call__(self, inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path, **ports: Any) -> Facts:
        """Run the step's function directly, as a test or another orchestrator would."""
        return self.function(inputs, params, out, **ports)


_STEP_NAME = re.compile(r"[a-z][a-z0-9_]*")


def step(
    name: str,
    *,
    code_version: str,
    kind: StepKind = StepKind.PURE,
    distributions: Sequence[str] = (),
    reads: Sequence[str] = (),
    env: Sequence[str] = (),
    caches: Sequence[str] = (),
) -> Callable[[Callable[..., Facts]], Step]:
    """Declare a step function.

    Args:
        name: lower-case name, unique in a pipeline.
        code_version: declared version of the code.
        kind: how the step is run and keyed.
        distributions: distributions whose installed versions are part of the key, beside those the code imports.
        reads: files to read beside the inputs, relative to the folder of the step's module.
        env: environment variables to read.
        caches: names of folders that make the step faster and change no result.

    Raises:
        StepDefinitionError: the name is not a lower-case identifier or the version is empty.
    """
    if not _STEP_NAME.fullmatch(name):
        raise StepDefinitionError(f"step name {name!r} is not usable; use lower-case letters, digits and underscores")
    if not code_version:
        raise StepDefinitionError(f"step {name!r} has an empty code_version; declare one, for example code_version='1'")
    needs = [tuple(sorted(names)) for names in (distributions, reads, env, caches)]
    return lambda function: Step(name, code_version, kind, function, *needs)


@dataclass(frozen=True)
class RunContext:
    """Which run a step is executed for.

    Attributes:
        run_id: identifier of the orchestrator's run.
        pipeline: name of the pipeline.
        week: first day of the weekly partition; None for unpartitioned assets.
        parent_run_ids: runs that this one re-executes, nearest first.
    """

    run_id: str
    pipeline: str
    week: date | None = None
    parent_run_ids: tuple[str, ...] = ()
    attempt: int = 0


class Verdict(StrEnum):
    """What a gate says of a candidate."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """Thresholds are met, by less than another draw of eval rows, or another seed, would change."""
    FIRST_RELEASE = "first_release"
    """There is no production to compare with."""
    ALREADY_PRODUCTION = "already_production"
    """The candidate is the production it would be compared with."""
    REFUSED = "refused"
    """The two cannot be compared."""

    @property
    def is_for(self) -> bool:
        """Tell whether the candidate may be promoted."""
        return self in (Verdict.PASS, Verdict.FIRST_RELEASE)


class Action(StrEnum):
    """What the engine did for a step."""

    EXECUTED = "executed"
    REUSED = "reused"


@dataclass(frozen=True)
class StepResult:
    """Outcome of one memoised step.

    Attributes:
        step: name of the step.
        action: executed or reused.
        key: the step key.
        output: digest of the output tree.
        facts: what the step said about its work when it was executed.
        seconds: wall-clock seconds this call took.
    """

    step: str
    action: Action
    key: Digest
    output: Digest
    facts: Facts
    seconds: float


@dataclass(frozen=True)
class ArtifactRef:
    """A lazy reference to a stored tree; what Dagster assets pass to each other."""

    digest: Digest


@dataclass(frozen=True)
class LineageRecord:
    """One put: how an output came to be (contract C5).

    Attributes:
        step: name of the step.
        key: step key.
        code: code fingerprint.
        inputs: input name to digest.
        params: the parameters as they were keyed.
        output: digest of the output tree.
        facts: what the step reported.
        run_id: run that executed it.
        manifest: digest of the manifest it was executed under, if there was one.
        isolation: level of confinement the step ran at.
        started: UTC.
        finished: UTC.
        cpu_seconds: CPU time of the step and its children.
        environment: environment fingerprint; with step, code, inputs and params it makes up the key.
        libraries: distribution name to version.
        escalations: where the code fingerprint was widened to a whole module or the project, and why.
    """

    step: str
    key: Digest
    code: Digest
    inputs: Mapping[str, Digest]
    params: Mapping[str, Any]
    output: Digest
    facts: Facts
    run_id: str
    isolation: str
    started: datetime
    finished: datetime
    cpu_seconds: float
    environment: Digest
    libraries: Mapping[str, str] = field(default_factory=dict)
    manifest: Digest | None = None
    escalations: tuple[str, ...] = ()


class StepObserver(Protocol):
    """Hears what the engine does; must not raise."""

    def started(self, step: str) -> None:
        """A step was missed and is about to be executed."""

    def progress(self, step: str, done: int, total: int, note: str = "") -> None:
        """A step got on: `done` of `total` units of work."""

    def said(self, step: str, level: str, text: str) -> None:
        """A step logged a line; `level` is a name of the logging module."""

    def finished(self, result: StepResult) -> None:
        """A step was executed or reused."""
