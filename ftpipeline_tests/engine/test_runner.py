"""The runner: a hit loads nothing, a miss commits everything or nothing, a frozen source is never asked again."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundPort, BoundStep
from ftpipeline.engine.child import Level, best_level
from ftpipeline.engine.flight import Pace
from ftpipeline.engine.holder import this_process
from ftpipeline.engine.identity import identify
from ftpipeline.engine.runner import Call, Runner
from ftpipeline.errors import (
    CanonicalFormError,
    CorruptArtifactError,
    EmptyResultError,
    LeakageError,
    LeaseLostError,
    MissingDependencyError,
    QuarantinedError,
    StepDefinitionError,
)
from ftpipeline.records import Action, Facts, RunContext, StepResult
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.engine.sample_steps import (
    copy,
    copy_v2,
    declared,
    infinite,
    needy,
    nosy,
    ordered,
    ported,
    source,
    spoiled,
)
from ftpipeline_tests.orchestration.servers import needs_proc
from ftpipeline_tests.store.damage import lose

RUN = RunContext("run-1", "tests")
_needs_enforcement = pytest.mark.skipif(
    best_level() is not Level.ENFORCED, reason="this kernel offers no Landlock or no seccomp notification"
)


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def started(self, step: str) -> None:
        self.events.append(f"started {step}")

    def progress(self, step: str, done: int, total: int, note: str = "") -> None:
        self.events.append(f"{step} {done}/{total} {note}")

    def said(self, step: str, level: str, text: str) -> None:
        self.events.append(f"{step} {level} {text}")

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


def test_a_hit_starts_nothing(store: Store) -> None:
    bound = BoundStep(ported, {"port": BoundPort("ftpipeline_tests.engine.sample_steps:Word", {"word": "w"})})
    heard = Heard()
    runner = Runner(store, heard)
    runner.run(Call(bound, {}, {}), RUN)
    runner.run(Call(bound, {}, {}), RUN)
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
    lose(store, store.trees.entries(made.output)[0].sha256)
    healed = _run(store, BoundStep(copy), add="a")
    assert healed.action is Action.EXECUTED
    assert store.trees.read(made.output, "text.txt") == b"a"


def test_a_frozen_source_that_lost_its_bytes_is_not_asked_again(store: Store) -> None:
    made = _run(store, BoundStep(source), add="a")
    lose(store, store.trees.entries(made.output)[0].sha256)
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


@pytest.mark.parametrize("level", [Level.OBSERVED, pytest.param(Level.ENFORCED, marks=_needs_enforcement)])
def test_an_undeclared_read_fails_the_step_also_when_it_swallows_the_denial(
    store: Store, tmp_path: Path, level: Level
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    call = Call(BoundStep(nosy), {}, {"file": str(secret)})
    with pytest.raises(StepDefinitionError, match=r"secret\.txt.*reads="):
        Runner(store, Heard(), level=level).run(call, RUN)
    assert store.results.of_step("nosy") == []


def test_declared_files_and_variables_can_be_read_and_are_keyed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTPIPELINE_TEST_WORD", "one")
    first = _run(store, BoundStep(declared))
    assert first.facts == {"text": "declared", "word": "one"}
    monkeypatch.setenv("FTPIPELINE_TEST_WORD", "two")
    assert _run(store, BoundStep(declared)).action is Action.EXECUTED


@_needs_enforcement
def test_confinement_changes_no_byte_and_is_recorded(store: Store, tmp_path: Path) -> None:
    observed, enforced = (Call(BoundStep(copy), {}, {"add": text}) for text in ("same", "same"))
    one = Runner(store, Heard(), level=Level.OBSERVED).run(observed, RUN)
    with closing(Home(tmp_path / "other").open()) as other:
        two = Runner(other, Heard(), level=Level.ENFORCED).run(enforced, RUN)
        assert (one.key, one.output) == (two.key, two.output)
        assert other.results.made(two.output)[0].isolation == "enforced"
    assert store.results.made(one.output)[0].isolation == "observed"


def test_a_quarantined_input_or_output_is_refused(store: Store) -> None:
    made = _run(store, BoundStep(copy), add="a")
    store.quarantine.mark(made.output, digest.of_bytes(b"receipt"), "its job diverged")
    with pytest.raises(QuarantinedError, match="its job diverged"):
        _run(store, BoundStep(copy), {"first": made.output}, add="b")
    with pytest.raises(QuarantinedError, match="its job diverged"):
        _run(store, BoundStep(copy), add="a")


def test_whoever_is_waited_for_is_said_once(store: Store) -> None:
    key, heard = _key(store, BoundStep(copy), add="a"), Heard()
    assert store.leases.acquire(key, "somebody", 60.0) is not None
    with pytest.raises(LeaseLostError):
        Runner(store, heard, pace=Pace(poll=0.01, patience=0.2)).run(Call(BoundStep(copy), {}, {"add": "a"}), RUN)
    assert heard.events == ["copy info waiting for somebody"]


@needs_proc
def test_a_holder_whose_process_has_ended_is_taken_over_long_before_its_time(store: Store) -> None:
    key, heard = _key(store, BoundStep(copy), add="a"), Heard()
    host, pid, machine, start, token = this_process().split(":")
    gone = ":".join((host, pid, machine, str(int(start) - 1), token))  # the pid's former owner
    assert store.leases.acquire(key, gone, 3600.0) is not None
    result = Runner(store, heard, pace=Pace(poll=0.01, patience=60.0)).run(Call(BoundStep(copy), {}, {"add": "a"}), RUN)
    assert result.action is Action.EXECUTED
    assert heard.events[0] == f"copy info {gone} has ended without its result; taking over"


def test_two_orders_of_one_parameter_give_one_key_and_one_output(store: Store, tmp_path: Path) -> None:
    one = _run(store, BoundStep(ordered), weights={"b": 1, "a": 2})
    with closing(Home(tmp_path / "other").open()) as other:
        two = _run(other, BoundStep(ordered), weights={"a": 2, "b": 1})
    assert (one.key, one.output) == (two.key, two.output)
