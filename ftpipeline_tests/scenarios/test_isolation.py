"""Confinement proves that a step reads what it declares; it must not change one byte of what it makes."""

from collections.abc import Mapping
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.stages import STAGES, run_stage
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundPort
from ftpipeline.engine.child import Level, best_level
from ftpipeline.errors import WorkerError
from ftpipeline.records import RunContext, StepKind
from ftpipeline.store.home import Home
from ftpipeline_tests.cycle.bundle_world import Silent
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline

_LAUNCHER = "ftpipeline.cycle.launch:SubprocessLauncher"
_PURE = ("curate", "split", "manifest", "export", "evaluate", "report", "gate")


def _cycle(file: Path, home: Path, level: Level) -> tuple[dict[str, Digest], Mapping[str, str]]:
    """Run a week in a home of its own; return the outputs by stage and the isolation recorded by step."""
    with closing(Home(home).open()) as store:
        launcher = BoundPort(_LAUNCHER, {"level": level}, keyed=False)
        cycle = Cycle(pipelines.load(file), store, Silent(), launcher, level)
        run = RunContext("run", cycle.pipeline.name, date.fromisoformat(WEEK))
        outputs: dict[str, Digest] = {}
        for stage in STAGES:
            outputs[stage.name] = run_stage(cycle, stage, run, {name: outputs[name] for name in stage.after}).output
        recorded = {name: record.isolation for name in _PURE for record in store.results.of_step(name)}
        return outputs, recorded


@pytest.mark.slow
@pytest.mark.skipif(best_level() is not Level.ENFORCED, reason="this kernel cannot confine a process")
def test_confined_and_unconfined_cycles_make_the_same_bytes_training_included(tmp_path: Path) -> None:
    file = build_tiny_pipeline(tmp_path / "pipeline")
    enforced, confined = _cycle(file, tmp_path / "enforced", Level.ENFORCED)
    observed, watched = _cycle(file, tmp_path / "observed", Level.OBSERVED)
    assert enforced == observed
    assert set(confined.values()) == {"enforced"}
    assert set(watched.values()) == {"observed"}


def test_a_pipeline_that_demands_enforcement_does_not_run_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = build_tiny_pipeline(tmp_path / "pipeline", isolation="enforced")
    monkeypatch.setattr("ftpipeline.engine.child.levels.best_level", lambda: Level.OBSERVED)
    with closing(Home(tmp_path / "home").open()) as store:
        cycle = Cycle(pipelines.load(file), store, Silent(), BoundPort(_LAUNCHER, keyed=False))
        with pytest.raises(WorkerError, match="enforced"):
            run_stage(cycle, STAGES[0], RunContext("run", "tiny"), {})
        assert store.results.of_step("base_model") == []


def test_every_built_in_step_that_reads_only_its_inputs_is_confined() -> None:
    from ftpipeline.cycle import bindings

    bound = (bindings.CURATE, bindings.SPLIT, bindings.MANIFEST, bindings.EXPORT, bindings.EVALUATE, bindings.GATE)
    assert {each.step.kind for each in bound} == {StepKind.PURE}
