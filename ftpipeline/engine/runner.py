"""The memoising runner: materialises inputs, runs the step, commits what stands under `out`, records the put."""

import resource
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.key import step_key, typed
from ftpipeline.engine.identity import Identity, identify
from ftpipeline.errors import CorruptArtifactError, StoreError
from ftpipeline.records import Action, Facts, LineageRecord, RunContext, StepKind, StepObserver, StepResult
from ftpipeline.store.home import Store

Check = Callable[[Digest, Facts], None]
"""Looks at a fresh output before it is recorded, and raises to refuse it."""


@dataclass(frozen=True)
class Call:
    """One call of a step.

    Attributes:
        bound: the step with its ports.
        inputs: input name to digest of a stored tree.
        params: declared parameters; all of them are in the key.
        manifest: the manifest the call is made under; lineage only.
        check: refuses an output before it is recorded.
    """

    bound: BoundStep
    inputs: Mapping[str, Digest]
    params: Mapping[str, Any]
    manifest: Digest | None = None
    check: Check | None = None

    def key(self, identity: Identity) -> Digest:
        """Return the step key."""
        return step_key(self.bound.step.name, identity.code, self.inputs, self.params, identity.environment)


class Runner:
    """Runs steps against one store."""

    def __init__(self, store: Store, observer: StepObserver) -> None:
        self._store = store
        self._observer = observer

    def run(self, call: Call, run: RunContext) -> StepResult:
        """Return the recorded result of this very call, or execute the step and record it.

        A hit loads no input and no port; it checks that the output's objects are there with their sizes.

        Raises:
            CorruptArtifactError: the frozen result of a source step lost its bytes, or an input does not verify.
            FtpipelineError: whatever the step refuses.
        """
        started = time.monotonic()
        identity = identify(call.bound, self._store.home.cache)
        key = call.key(identity)
        known = self._store.results.find(key)
        if known is not None and self._store.trees.is_present(known.output):
            result = self._result(known, Action.REUSED, started)
        else:
            self._refuse_to_refetch(call, known)
            self._observer.started(call.bound.step.name)
            result = self._result(self._execute(call, key, identity, run), Action.EXECUTED, started)
        self._observer.finished(result)
        return result

    def _result(self, record: LineageRecord, action: Action, started: float) -> StepResult:
        seconds = time.monotonic() - started
        return StepResult(record.step, action, record.key, record.output, record.facts, seconds)

    def _refuse_to_refetch(self, call: Call, known: LineageRecord | None) -> None:
        """A source moves on: what it answers today is not what was frozen."""
        if known is not None and call.bound.step.kind is StepKind.SOURCE:
            raise CorruptArtifactError(known.output, "missing objects and was frozen from a source that moves on")

    def _execute(self, call: Call, key: Digest, identity: Identity, run: RunContext) -> LineageRecord:
        started, cpu = datetime.now(UTC), _cpu_seconds()
        with self._workspace() as workspace:
            facts = self._call_step(call, workspace)
            output = self._store.trees.put(workspace / "out")
        digest.canonical_json(facts)  # a fact that is not finite JSON is a fault of the step: refuse it before the row
        if call.check is not None:
            call.check(output, facts)
        return self._store.results.record(
            LineageRecord(
                step=call.bound.step.name,
                key=key,
                code=identity.code,
                inputs=dict(call.inputs),
                params={"typed": typed(call.params), "plain": _plain(call.params)},
                output=output,
                facts=facts,
                run_id=run.run_id,
                isolation="none",
                started=started,
                finished=datetime.now(UTC),
                cpu_seconds=_cpu_seconds() - cpu,
                environment=identity.environment,
                libraries=identity.libraries,
                manifest=call.manifest,
                escalations=identity.escalations,
            )
        )

    def _call_step(self, call: Call, workspace: Path) -> Facts:
        step = call.bound.step
        folders = {}
        for name, tree in call.inputs.items():
            folders[name] = workspace / "in" / name
            self._store.trees.checkout(tree, folders[name])
        out = workspace / "out"
        out.mkdir()
        ports = call.bound.load_ports()
        if call.bound.shows_progress:
            ports["progress"] = lambda done, total, note="": self._observer.progress(step.name, done, total, note)
        return step(folders, call.params, out, **ports)

    @contextmanager
    def _workspace(self) -> Iterator[Path]:
        """A folder of this call's own, beside the store, gone afterwards whatever happens."""
        folder = self._store.home.scratch / uuid.uuid4().hex
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise StoreError(
                f"{folder.parent}: cannot be written ({error.strerror}); free space or permit it"
            ) from error
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _cpu_seconds() -> float:
    """CPU time of this process and of its ended children, in seconds."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _plain(value: Any) -> Any:
    """The parameters as people read them: plain JSON, tuples as lists, keys as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
