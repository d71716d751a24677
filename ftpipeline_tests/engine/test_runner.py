"""The runner: a hit loads nothing, a miss commits everything or nothing, a frozen source is never asked again."""

from collections.abc import Mapping
from typing import Any

import pytest

from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundPort, BoundStep
from ftpipeline.engine.identity import identify
from ftpipeline.engine.runner import Call, Runner
from ftpipeline.errors import (
    CanonicalFormError,
    CorruptArtifactError,
    EmptyResultError,
    LeakageError,
    MissingDependencyError,
    StepDefinitionError,
)
from ftpipeline.records import Action, Facts, RunContext, StepResult
from ftpipeline.store.home import Store
from ftpipeline_tests.engine.sample_steps import Word, copy, copy_v2, infinite, needy, ported, source, spoiled

RUN = RunContext("run-1", "tests")


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def started(self, step: str) -> None:
        self.events.append(f"started {step}")

    def progress(self, step: str, done: int, total: int, note: str = "") -> None:
        self.events.append(f"{step} {done}/{total} {note}")

    def finished(self, result: StepResult) -> None:
        self.events.append(f"{result.action} {result.step}")


def _run(store: Store, bound: BoundStep, inputs: Mapping[str, Digest] | None = None, **params: Any) -> StepResult:
    return Runner(store, Heard()).run(Call(bound, inputs or {}, params), RUN)


def _key(store: Store, bound: BoundStep, **params: Any) -> Digest:
    return Call(bound, {}, params).key(identify(bound, store.home.cache))


def test_the_second_call_is_reused_with_the_same_output_and_facts(store: Store) -> None:
    first = _run(store, BoundStep(copy), add="a")
    second = _run(store, BoundStep(copy), add="a")
    assert (first.action, second.action) == (Action.EXECUTED, Action.REUSED)
    assert (first.key, first.output, first.facts) == (second.key, second.output, second.facts)
    assert store.trees.read(first.output, "text.txt") == b"a"


def test_code_version_inputs_params_and_ports_each_make_another_key(store: Store) -> None:
    base = _run(store, BoundStep(copy), add="a")
    port = BoundPort("ftpipeline_tests.engine.sample_steps:Word", {"word": "x"})
    other = BoundPort("ftpipeline_tests.engine.sample_steps:Other", {"word": "x"})
    keys = {
        base.key,
        _run(store, BoundStep(copy_v2), add="a").key,
        _run(store, BoundStep(copy), add="b").key,
        _run(store, BoundStep(copy), {"i": base.output}, add="a").key,
        _key(store, BoundStep(copy, {"port": port}), add="a"),
        _key(store, BoundStep(copy, {"port": other}), add="a"),
        _key(store, BoundStep(copy, workers=("ftpipeline.weeks",)), add="a"),
    }
    assert len(keys) == 7


def test_the_place_of_a_port_is_in_no_key(store: Store) -> None:
    here = BoundPort("ftpipeline_tests.engine.sample_steps:Word", {"word": "here"})
    there = BoundPort("ftpipeline_tests.engine.sample_steps:Word", {"word": "there"})
    assert _key(store, BoundStep(ported, {"port": here})) == _key(store, BoundStep(ported, {"port": there}))


def test_a_hit_constructs_no_port_and_shows_no_start(store: Store) -> None:
    bound = BoundStep(ported, {"port": BoundPort("ftpipeline_tests.engine.sample_steps:Word", {"word": "w"})})
    heard = Heard()
    runner = Runner(store, heard)
    Word.made = 0
    runner.run(Call(bound, {}, {}), RUN)
    runner.run(Call(bound, {}, {}), RUN)
    assert Word.made == 1
    assert heard.events == ["started ported", "ported 1/2 half way", "executed ported", "reused ported"]


@pytest.mark.parametrize(("failing", "error"), [(spoiled, EmptyResultError), (infinite, CanonicalFormError)])
def test_a_step_that_fails_leaves_no_result_and_no_workspace(
    store: Store, failing: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        _run(store, BoundStep(failing))
    assert store.results.find(_key(store, BoundStep(failing))) is None
    assert list(store.home.scratch.iterdir()) == []


def test_an_output_that_the_caller_refuses_is_not_recorded(store: Store) -> None:
    def refuse(output: Digest, facts: Facts) -> None:
        raise LeakageError("refused")

    call = Call(BoundStep(copy), {}, {"add": "a"}, check=refuse)
    with pytest.raises(LeakageError):
        Runner(store, Heard()).run(call, RUN)
    assert store.results.find(_key(store, BoundStep(copy), add="a")) is None


def test_a_pure_result_that_lost_its_bytes_is_made_again(store: Store) -> None:
    made = _run(store, BoundStep(copy), add="a")
    store.blobs.path(store.trees.entries(made.output)[0].sha256).unlink()
    healed = _run(store, BoundStep(copy), add="a")
    assert healed.action is Action.EXECUTED
    assert store.trees.read(made.output, "text.txt") == b"a"


def test_a_frozen_source_that_lost_its_bytes_is_not_asked_again(store: Store) -> None:
    made = _run(store, BoundStep(source), add="a")
    store.blobs.path(store.trees.entries(made.output)[0].sha256).unlink()
    with pytest.raises(CorruptArtifactError, match="frozen from a source"):
        _run(store, BoundStep(source), add="a")


def test_the_lineage_of_a_put_names_code_inputs_params_and_run(store: Store) -> None:
    first = _run(store, BoundStep(copy), add="a")
    second = _run(store, BoundStep(copy), {"first": first.output}, add=("b",)[0])
    record = store.results.made(second.output)[0]
    assert record.inputs == {"first": first.output}
    assert record.params["plain"] == {"add": "b"}
    assert (record.step, record.run_id, record.key) == ("copy", "run-1", second.key)
    assert record.started <= record.finished


def test_a_missing_distribution_and_a_missing_port_are_named(store: Store) -> None:
    with pytest.raises(MissingDependencyError, match="no-such-distribution"):
        _run(store, BoundStep(needy))
    gone = BoundStep(ported, {"port": BoundPort("ftpipeline_tests.engine.sample_steps:Gone")})
    with pytest.raises(StepDefinitionError, match="Gone"):
        _run(store, gone)
