"""The ground of a stage: the production that a run is gated against."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.bindings import SUBPROCESS_LAUNCHER
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.digest import Digest, of_bytes
from ftpipeline.records import RunContext, StepResult
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline.store.tables import production_pins
from ftpipeline_tests.tiny_pipeline import build_tiny_pipeline

THEIRS = of_bytes(b"what stands in production")
CycleIn = Callable[[Store], Cycle]


class Nobody:
    """Hears of nothing."""

    def started(self, step: str) -> None: ...

    def progress(self, step: str, done: int, total: int, note: str = "") -> None: ...

    def said(self, step: str, level: str, text: str) -> None: ...

    def finished(self, result: StepResult) -> None: ...


@pytest.fixture(scope="module")
def cycle_in(tmp_path_factory: pytest.TempPathFactory) -> CycleIn:
    pipeline = pipelines.load(build_tiny_pipeline(tmp_path_factory.mktemp("pipeline")))
    return lambda store: Cycle(pipeline, store, Nobody(), SUBPROCESS_LAUNCHER)


def pinned_elsewhere(store: Store, cycle: Cycle, run_id: str, digest: Digest) -> None:
    """Let another process of the run pin it first."""
    values = {"run_id": run_id, "name": cycle.pipeline.name, "digest": digest, "generation": 3}
    with store.database.write() as connection:
        connection.execute(production_pins.insert().values(values))


def test_a_run_is_asked_of_the_database_once(store: Store, cycle_in: CycleIn) -> None:
    cycle, run = cycle_in(store), RunContext("run-1", "tiny")
    first = cycle.pin(run)
    assert (first.run_id, first.digest) == ("run-1", None)
    assert cycle_in(store).pin(run) is first


def test_another_run_of_the_same_process_has_its_own_pin(store: Store, cycle_in: CycleIn) -> None:
    cycle = cycle_in(store)
    assert cycle.pin(RunContext("run-1", "tiny")).digest is None
    pinned_elsewhere(store, cycle, "run-2", THEIRS)
    assert cycle.pin(RunContext("run-2", "tiny")).digest == THEIRS
    assert cycle.pin(RunContext("run-1", "tiny")).digest is None


def test_another_home_of_the_same_process_has_its_own_pin(store: Store, cycle_in: CycleIn, tmp_path: Path) -> None:
    run = RunContext("run-1", "tiny")
    assert cycle_in(store).pin(run).digest is None
    with closing(Home(tmp_path / "other").open()) as other:
        pinned_elsewhere(other, cycle_in(other), "run-1", THEIRS)
        assert cycle_in(other).pin(run).digest == THEIRS
