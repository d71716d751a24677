"""Bytes that rot: a read refuses and names them, fsck lists and moves them aside, and running the week again heals."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.bindings import SUBPROCESS_LAUNCHER
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.maintenance import fsck
from ftpipeline.cycle.stages import BY_NAME, run_stage
from ftpipeline.digest import Digest
from ftpipeline.errors import CorruptArtifactError
from ftpipeline.records import Action, RunContext, StepResult
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_world import Silent
from ftpipeline_tests.store.damage import flip_a_bit, lose, truncate
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline

_STAGES = ("eval_task", "eval_regression", "eval_safety", "snapshot", "curate", "split")


class Week:
    """The stages of a week up to the split."""

    def __init__(self, file: Path, store: Store) -> None:
        self.store = store
        self.outputs: dict[str, Digest] = {}
        self._cycle = Cycle(pipelines.load(file), store, Silent(), SUBPROCESS_LAUNCHER)

    def run(self, name: str) -> StepResult:
        stage = BY_NAME[name]
        run = RunContext("run", "tiny", date.fromisoformat(WEEK))
        result = run_stage(self._cycle, stage, run, {each: self.outputs[each] for each in stage.after})
        self.outputs[name] = result.output
        return result

    def file_of(self, name: str) -> Digest:
        """Return the digest of the rows that a stage made."""
        files = {entry.path: entry.sha256 for entry in self.store.trees.entries(self.outputs[name])}
        return files["rows.parquet"]


@pytest.fixture
def week(tmp_path: Path, home: Home) -> Iterator[Week]:
    with closing(home.open()) as store:
        week = Week(build_tiny_pipeline(tmp_path / "pipeline"), store)
        for name in _STAGES[:-1]:
            week.run(name)
        yield week


@pytest.mark.parametrize("damage", [flip_a_bit, truncate, lose])
def test_a_deterministic_result_that_rots_is_refused_listed_and_healed(
    week: Week, damage: Callable[[Store, Digest], None]
) -> None:
    rows = week.file_of("curate")
    curated = week.outputs["curate"]
    damage(week.store, rows)
    with pytest.raises(CorruptArtifactError) as refused:
        week.run("split")
    assert refused.value.digest == rows
    assert rows in {problem.digest for problem in fsck(week.store).problems}
    healed = week.run("curate")
    assert (healed.action, healed.output) == (Action.EXECUTED, curated)
    assert week.run("split").action is Action.EXECUTED
    assert fsck(week.store).problems == ()


def test_a_frozen_snapshot_that_rots_is_not_taken_anew(week: Week) -> None:
    lose(week.store, week.file_of("snapshot"))
    with pytest.raises(CorruptArtifactError, match="frozen from a source that moves on"):
        week.run("snapshot")
