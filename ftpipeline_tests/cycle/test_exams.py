"""What a gate was ever measured on is never trained on, however the eval sets change."""

import csv
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.bindings import SUBPROCESS_LAUNCHER
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.exams import earlier_eval_sets
from ftpipeline.cycle.stages import BY_NAME, EVAL_SETS, run_stage
from ftpipeline.digest import Digest
from ftpipeline.errors import ManifestError
from ftpipeline.records import RunContext, StepResult
from ftpipeline.steps.rows import CuratedRow
from ftpipeline.steps.tables import read_rows
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_world import Silent
from ftpipeline_tests.registry.world import World
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline, write_pipeline

NAME = "tiny"


class Weeks:
    """The stages of a week up to the split, with eval sets that change between two runs."""

    def __init__(self, file: Path, store: Store) -> None:
        self.file = file
        self.store = store

    @property
    def cycle(self) -> Cycle:
        return Cycle(pipelines.load(self.file), self.store, Silent(), SUBPROCESS_LAUNCHER)

    def split(self) -> StepResult:
        outputs: dict[str, Digest] = {}
        run = RunContext("run", NAME, date.fromisoformat(WEEK))
        for name in (*EVAL_SETS, "snapshot", "curate", "split"):
            stage = BY_NAME[name]
            result = run_stage(self.cycle, stage, run, {each: outputs[each] for each in stage.after})
            outputs[name] = result.output
        return result

    def train_texts(self, split: StepResult) -> set[str]:
        folder = self.file.parent / "checked out" / split.output[-8:]
        if not folder.exists():
            self.store.trees.checkout(split.output, folder)
        return {row.text for row in read_rows(folder / "train.parquet", CuratedRow)}

    def task_set(self, version: str, *, name: str = f"{NAME}-gold", extra: str | None = None) -> None:
        """Declare a version of the task set: the usual rows, and one more text where it is given."""
        with (self.file.parent / "gold.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        rows += [["extra", extra, rows[1][2]]] if extra is not None else []
        target = self.file.parent / f"{name}-{version}.csv"
        with target.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        sets: dict[str, Any] = pipelines.load(self.file).file.eval_sets.model_dump(mode="json")
        sets["task"] |= {"name": name, "version": version, "file": target.name}
        write_pipeline(self.file, name=NAME, eval_sets=sets)


@pytest.fixture
def weeks(tmp_path: Path, home: Home) -> Iterator[Weeks]:
    with closing(home.open()) as store:
        yield Weeks(build_tiny_pipeline(tmp_path / "pipeline", name=NAME), store)


def a_ticket(weeks: Weeks) -> str:
    """Return the text of a ticket that the split trains on."""
    return min(weeks.train_texts(weeks.split()))


def leaked(split: StepResult) -> Mapping[str, int]:
    return {row["eval_set"]: row["leaked"] + row["leaked_from_validation"] for row in split.facts["leaks"]}


def test_a_row_of_an_old_version_of_an_eval_set_is_still_not_trained_on(weeks: Weeks) -> None:
    ticket = a_ticket(weeks)
    weeks.task_set("v2", extra=ticket)
    assert ticket not in weeks.train_texts(weeks.split())
    weeks.task_set("v3")
    split = weeks.split()
    assert ticket not in weeks.train_texts(split)
    assert leaked(split)[f"{NAME}-gold_v2"] > 0


def test_a_week_whose_eval_sets_never_changed_is_split_as_before(weeks: Weeks) -> None:
    first = weeks.split()
    assert earlier_eval_sets(weeks.cycle, set(weeks_sets(weeks))) == {}
    assert weeks.split().key == first.key


def weeks_sets(weeks: Weeks) -> list[Digest]:
    found = [weeks.store.eval_sets.find(f"{NAME}-{name}", "v1") for name in ("gold", "regression", "safety")]
    return [digest for digest in found if digest is not None]


def test_what_a_registered_artifact_was_gated_on_counts_also_under_another_name(weeks: Weeks) -> None:
    weeks.split()
    world = World(weeks.store.database, weeks.store.home.store_root, NAME)
    assert earlier_eval_sets(weeks.cycle, weeks_sets(weeks)) == {}
    world.register("a")
    earlier = earlier_eval_sets(weeks.cycle, weeks_sets(weeks))
    assert earlier.keys() == {"eval_task_v1", "eval_regression_v1", "eval_safety_v1"}
    assert set(earlier.values()) == {
        weeks.store.eval_sets.find(role, "v1") for role in ("task", "regression", "safety")
    }


def test_an_artifact_of_another_pipeline_adds_nothing(weeks: Weeks) -> None:
    weeks.split()
    World(weeks.store.database, weeks.store.home.store_root, "another").register("a")
    assert earlier_eval_sets(weeks.cycle, weeks_sets(weeks)) == {}


def test_a_registered_manifest_without_pinned_eval_sets_stops_the_split(weeks: Weeks) -> None:
    world = World(weeks.store.database, weeks.store.home.store_root, NAME)
    loose = world.manifest("a", eval_sets={})
    world.registry.register(**world.arguments("a", world.gate("a", manifest=loose), manifest=loose))
    with pytest.raises(ManifestError, match="pins no eval sets"):
        weeks.split()


def test_the_source_holds_the_ticket_that_the_tests_leak(weeks: Weeks) -> None:
    ticket = a_ticket(weeks)
    with duckdb.connect(str(weeks.file.parent / "tickets.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM tickets WHERE body = ?", [ticket]).fetchone() != (0,)
