"""One pipeline in one home: the shared ground of every stage."""

from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundPort
from ftpipeline.engine.child import Level
from ftpipeline.engine.child.levels import require
from ftpipeline.engine.runner import Call, Runner
from ftpipeline.errors import UnknownNameError
from ftpipeline.pipeline import Pipeline
from ftpipeline.records import Facts, RunContext, StepObserver, StepResult
from ftpipeline.registry.gate_receipts import GateReceipts
from ftpipeline.registry.records import Pin
from ftpipeline.registry.registry import Registry
from ftpipeline.store.database import Database
from ftpipeline.store.opened import Store

_pins: WeakKeyDictionary[Database, dict[str, Pin]] = WeakKeyDictionary()
"""The pin of each name that this process read last: it is written once a run and never changed."""


@dataclass(frozen=True)
class Cycle:
    """A pipeline, the store it runs in, who watches, how workers are launched, and how well steps are confined.

    Attributes:
        level: of pure steps; None for what the pipeline demands, and else for the best the platform can do.
    """

    pipeline: Pipeline
    store: Store
    observer: StepObserver
    launcher: BoundPort
    level: Level | None = None

    @property
    def registry(self) -> Registry:
        """Return the registry of this store."""
        return Registry.of_store(self.store)

    @property
    def receipts(self) -> GateReceipts:
        """Return the gate receipts of this store."""
        return GateReceipts(self.store.database, self.store.trees)

    @property
    def cache(self) -> Path:
        """Return the folder of facts that can be found out again."""
        return self.store.home.cache

    def run(self, call: Call, run: RunContext) -> StepResult:
        """Run one memoised step.

        Raises:
            WorkerError: the pipeline demands a confinement that this platform cannot give.
        """
        return Runner(self.store, self.observer, level=self.level or self._demanded()).run(call, run)

    def _demanded(self) -> Level | None:
        demanded = self.pipeline.file.isolation
        if demanded == "best":
            return None
        require(Level(demanded))
        return Level(demanded)

    def pin(self, run: RunContext) -> Pin:
        """Return the production that this run is gated against; written once, by the run's first step."""
        name, known = self.pipeline.name, _pins.setdefault(self.store.database, {})
        pin = known.get(name)
        if pin is None or pin.run_id != run.run_id:
            pin = known[name] = self.registry.pin(run.run_id, name)
        return pin

    def facts_of(self, step: str, output: Digest) -> Facts:
        """Return what `step` said when it made `output`.

        Raises:
            UnknownNameError: no such result is recorded.
        """
        for record in self.store.results.made(output):
            if record.step == step:
                return record.facts
        raise UnknownNameError(f"{output} is recorded as no output of {step!r}; run {step!r} in this home first")
