"""The memoising runner: one execution a key, with honest inputs, and a record of every put.

A pure step runs in a confined child (`ftpipeline.engine.child`); a source asks the outside world and a launched step
starts a worker behind a wall of its own, so both run here.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.child import Level
from ftpipeline.engine.execute import Execution, execute
from ftpipeline.engine.flight import DEFAULT_PACE, Pace, single_flight
from ftpipeline.engine.identity import Identity, identify
from ftpipeline.engine.key import step_key, typed
from ftpipeline.engine.waiting import Waiting
from ftpipeline.errors import CorruptArtifactError
from ftpipeline.records import Action, Facts, LineageRecord, RunContext, StepKind, StepObserver, StepResult
from ftpipeline.store.opened import Store
from ftpipeline.store.stamps import VerificationStamps

_FROZEN = "it was frozen from a source that moves on: restore its objects from a backup; it is not asked for again"

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
        before: called when the step is missed, before it is executed; for what makes it faster and is in no key.
    """

    bound: BoundStep
    inputs: Mapping[str, Digest]
    params: Mapping[str, Any]
    manifest: Digest | None = None
    check: Check | None = None
    before: Callable[[], None] | None = None

    def key(self, identity: Identity) -> Digest:
        """Return the step key."""
        return step_key(self.bound.step.name, identity.code, self.inputs, self.params, identity.environment)


class Runner:
    """Runs steps against one store.

    Args:
        store: where inputs are and outputs go.
        observer: hears of every step.
        level: how well pure steps are confined; the best that the platform can do unless given.
        pace: how long one who waits for another's result waits.
    """

    def __init__(
        self, store: Store, observer: StepObserver, *, level: Level | None = None, pace: Pace = DEFAULT_PACE
    ) -> None:
        self._store = store
        self._stamps = VerificationStamps(store.blobs, store.trees, store.home.cache)
        self._observer = observer
        self._level = level
        self._pace = pace

    def run(self, call: Call, run: RunContext) -> StepResult:
        """Return the recorded result of this very call, or execute the step and record it.

        A hit loads no input and no port; it checks that the output's objects are there, of their sizes and untouched
        since they verified. Of several processes that miss one key, one executes and the others wait for it.

        Raises:
            CorruptArtifactError: the recorded output is altered, the frozen result of a source step lost its bytes, or
                an input does not verify.
            QuarantinedError: an input, or the output, is under quarantine.
            FtpipelineError: whatever the step refuses.
        """
        started = time.monotonic()
        identity = identify(call.bound, self._store.home.cache)
        key = call.key(identity)
        flight = single_flight(
            self._store.leases,
            self._store.results,
            key,
            lambda: self._compute(call, key, identity, run),
            is_usable=lambda record: self._is_whole(call, record),
            on_refusal=Waiting(self._store.leases, self._observer, call.bound.step.name, key),
            pace=self._pace,
        )
        action = Action.EXECUTED if flight.computed else Action.REUSED
        record, seconds = flight.record, time.monotonic() - started
        result = StepResult(record.step, action, key, record.output, record.facts, seconds)
        self._observer.finished(result)
        return result

    def _is_whole(self, call: Call, record: LineageRecord) -> bool:
        """Tell whether a result's bytes are there; a source moves on, so what it froze is not asked for again."""
        whole = self._stamps.is_whole(record.output)
        if not whole and call.bound.step.kind is StepKind.SOURCE:
            raise CorruptArtifactError(record.output, "missing objects", remedy=_FROZEN)
        return whole

    def _refuse_to_refetch(self, call: Call, key: Digest) -> None:
        """A frozen result that was set aside (quarantined, erased, collected) is not asked for again under its key."""
        earlier = self._store.results.of_key(key) if call.bound.step.kind is StepKind.SOURCE else []
        if earlier:
            raise CorruptArtifactError(earlier[-1].output, "set aside", remedy=_FROZEN)

    def _compute(self, call: Call, key: Digest, identity: Identity, run: RunContext) -> LineageRecord:
        self._refuse_to_refetch(call, key)
        for tree in call.inputs.values():
            self._store.quarantine.check(tree)
        self._observer.started(call.bound.step.name)
        started = datetime.now(UTC)
        if call.before is not None:
            call.before()
        done = execute(self._store, self._observer, call.bound, identity, call.inputs, call.params, self._level)
        digest.canonical_json(done.facts)  # a fact that is not finite JSON is a fault of the step: refuse it here
        if call.check is not None:
            call.check(done.output, done.facts)
        return self._record(call, key, identity, run, done, started)

    def _record(
        self, call: Call, key: Digest, identity: Identity, run: RunContext, done: Execution, started: datetime
    ) -> LineageRecord:
        return LineageRecord(
            step=call.bound.step.name,
            key=key,
            code=identity.code,
            inputs=dict(call.inputs),
            params={"typed": typed(call.params), "plain": _plain(call.params)},
            output=done.output,
            facts=done.facts,
            run_id=run.run_id,
            isolation=done.isolation,
            started=started,
            finished=datetime.now(UTC),
            cpu_seconds=done.cpu_seconds,
            environment=identity.environment,
            libraries=identity.libraries,
            manifest=call.manifest,
            escalations=identity.escalations,
        )


def _plain(value: Any) -> Any:
    """The parameters as people read them: plain JSON, tuples as lists, keys as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
