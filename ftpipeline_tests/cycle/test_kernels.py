"""Kernels are compiled once in the open; a confined step reads that code, compiles nothing, and finds the same."""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from ftpipeline.cycle import bindings, data
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.kernels import compile_kernels
from ftpipeline.cycle.stages import BY_NAME, EVAL_SETS, run_stage
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.runner import Call, Runner
from ftpipeline.errors import WorkerError
from ftpipeline.pipeline import load
from ftpipeline.records import RunContext
from ftpipeline.steps.leakage.jit import KERNELS, folder_name
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_world import Silent
from ftpipeline_tests.cycle.kernel_step import search, undeclared
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline, write_pipeline


def _files(folder: Path) -> Mapping[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def _found(store: Store, step: BoundStep, number: int) -> tuple[Digest, int]:
    """Return the output of one call, and how many kernels it compiled."""
    done = Runner(store, Silent()).run(Call(step, {}, {"number": number}), RunContext("run", "p"))
    record = json.loads(store.trees.read(done.output, "found.json"))
    return done.output, record["compiled"]


@pytest.mark.slow
def test_a_confined_step_uses_the_compiled_kernels_and_changes_none_of_them(store: Store) -> None:
    step = BoundStep(search)
    _, compiled = _found(store, step, 1)
    assert compiled > 20
    compile_kernels(store.home.cache)
    folder = store.home.cache / KERNELS / folder_name()
    before = _files(folder)
    assert len(before) > 40
    assert _found(store, step, 2)[1] == 0
    assert _files(folder) == before
    compile_kernels(store.home.cache)
    assert _files(folder) == before
    assert [path.name for path in store.home.cache.iterdir() if path.name.startswith(".")] == []


def test_a_step_that_declares_no_cache_is_given_none(store: Store) -> None:
    (store.home.cache / KERNELS).mkdir(parents=True)
    (store.home.cache / KERNELS / "code").write_text("x")
    done = Runner(store, Silent()).run(Call(BoundStep(undeclared), {}, {}), RunContext("run", "p"))
    assert json.loads(store.trees.read(done.output, "found.json")) == {"caches": []}


def test_a_missed_split_of_many_rows_asks_for_the_kernels_and_a_reused_one_does_not(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycle = Cycle(load(build_tiny_pipeline(tmp_path / "tiny")), store, Silent(), bindings.SUBPROCESS_LAUNCHER)
    asked: list[Path] = []
    monkeypatch.setattr(data, "compile_kernels", asked.append)
    made: dict[str, Digest] = {}
    for name in (*EVAL_SETS, "snapshot", "curate"):
        made[name] = _stage(cycle, name, made)
    _stage(cycle, "split", made)
    assert asked == []
    monkeypatch.setattr(data, "FEW_ROWS", 10)
    _stage(cycle, "split", made)
    assert asked == []
    write_pipeline(cycle.pipeline.path, split={"validation_fraction": 0.3})
    other = replace(cycle, pipeline=load(cycle.pipeline.path))
    _stage(other, "split", made)
    assert asked == [store.home.cache]


def _stage(cycle: Cycle, name: str, made: Mapping[str, Digest]) -> Digest:
    run = RunContext("run", "tiny", date.fromisoformat(WEEK))
    return run_stage(cycle, BY_NAME[name], run, {before: made[before] for before in BY_NAME[name].after}).output


def test_kernels_that_cannot_be_compiled_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkerError, match="cannot be compiled"):
        compile_kernels(tmp_path)
    assert list(tmp_path.iterdir()) == []
