"""What a second run does, and what moves between two weeks: whole cycles of a tiny pipeline on the command line."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle import bindings
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.stages import BY_NAME, STAGES, run_stage
from ftpipeline.orchestration.observe import Observers
from ftpipeline.orchestration.run import persistent_instance
from ftpipeline.records import RunContext
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cli.command import ftpipeline_program, named_places_only, open_home
from ftpipeline_tests.scenarios.site import GATES, NAME, RETICENT, Site, build_site
from ftpipeline_tests.tiny_pipeline import NEXT_WEEK, WEEK

_STEPS = {stage.name for stage in STAGES}
_SHARED = {stage.name for stage in STAGES if not stage.weekly}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The first week, trained and registered."""
    site = build_site(tmp_path_factory.mktemp("first") / "site")
    site.declare(abstention=RETICENT)
    return site.run(WEEK)


@pytest.fixture(scope="module")
def released(first: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The first week in production."""
    site = first.copy(tmp_path_factory.mktemp("released") / "site")
    site.promote("production", expect=0)
    return site


@pytest.fixture(scope="module")
def second(released: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The next week, trained and gated against the first."""
    site = released.copy(tmp_path_factory.mktemp("second") / "site")
    site.declare()
    return site.run(NEXT_WEEK)


@pytest.fixture(scope="module")
def failed(second: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The next week under a gate that it cannot pass."""
    site = second.copy(tmp_path_factory.mktemp("failed") / "site")
    site.declare(gates=GATES | {"task_min_gain_vs_prod": 0.9})
    return site.run(NEXT_WEEK, code=1)


Copy = Callable[[Site], Site]


@pytest.fixture
def copied(tmp_path: Path) -> Copy:
    return lambda site: site.copy(tmp_path / "site")


def test_the_first_run_of_a_week_executes_every_step(first: Site) -> None:
    assert first.executed == _STEPS
    assert (first.last["verdict"], first.last["stage"]) == ("first_release", "candidate")


def test_a_second_run_of_a_week_executes_nothing_and_says_so(first: Site, copied: Copy) -> None:
    again = copied(first).run(WEEK)
    assert (again.executed, again.outputs) == (set(), first.outputs)
    said = again.command("run", again.file, "--week", WEEK)
    assert said.code == 0
    assert f"0 steps executed, {len(STAGES)} reused" in said.stdout.splitlines()


def test_another_process_knows_what_this_one_made(first: Site, copied: Copy) -> None:
    site = copied(first)
    done = ftpipeline_program("run", site.file, "--week", WEEK, "--home", site.home, "--json")
    assert done.code == 0, done.stderr
    again = Site(site.folder, done.document)
    assert (again.executed, again.outputs) == (set(), first.outputs)


def test_other_evaluation_parameters_only_evaluate_and_decide_again(first: Site, copied: Copy) -> None:
    site = copied(first)
    site.declare(abstention=RETICENT, evaluation={"batch_size": 7})
    assert site.run(WEEK).executed == {"manifest", "evaluate", "gate", "register"}


def test_other_gates_only_decide_again(first: Site, copied: Copy) -> None:
    site = copied(first)
    site.declare(abstention=RETICENT, gates=GATES | {"safety_max_drop": 0.25})
    assert site.run(WEEK).executed == {"manifest", "gate", "register"}


def test_another_week_executes_everything_but_what_weeks_share(second: Site) -> None:
    assert second.executed == _STEPS - _SHARED


def test_the_promoted_week_is_already_production(released: Site, copied: Copy) -> None:
    again = copied(released).run(WEEK, code=0)
    assert (again.last["verdict"], again.last["stage"]) == ("already_production", "production")
    assert again.last["reasons"] == []
    assert again.executed == {"gate"}  # against another production than before; nothing is measured or made again


def test_the_next_week_is_gated_against_production_on_the_same_sets(second: Site) -> None:
    candidate, production = (_stored(second, "evaluate", f"{side}.json") for side in ("candidate", "production"))
    assert (candidate["artifact"], production["artifact"]) == (second.artifact, second.production())
    assert candidate["eval_sets"] == production["eval_sets"]
    pinned = {"digest": second.production(), "generation": 1}
    assert _stored(second, "gate", "gate.json")["production"] == pinned
    gain = candidate["metrics"]["task"] - production["metrics"]["task"]
    assert float(second.last["differences"]["task"]) == pytest.approx(gain)
    assert second.last["verdict"] == "pass"


def _stored(site: Site, step: str, file: str) -> Any:
    with open_home(site.home) as store:
        return json.loads(store.trees.read(site.outputs[step], file))


def test_a_failed_gate_rejects_with_reasons_and_retrains_nothing(failed: Site, second: Site) -> None:
    assert failed.executed == {"manifest", "gate", "register"}
    assert (failed.last["verdict"], failed.last["stage"]) == ("fail", "rejected")
    assert [reason["code"] for reason in failed.last["reasons"]] == ["task_gain_below_threshold"]
    entry = failed.document("registry", "list", NAME)[-1]
    assert (entry["stage"], entry["reasons"]) == ("rejected", failed.last["reasons"])
    assert failed.production() == second.production()


def test_a_failed_gate_is_a_failed_check_of_a_successful_run(failed: Site) -> None:
    run_id = failed.last["dagster_run_id"]
    with named_places_only(), persistent_instance(Home(failed.home)) as instance:
        run = instance.get_run_by_id(run_id)
        checks = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        evaluations = [entry.get_dagster_event().asset_check_evaluation_data for entry in checks]
    assert run is not None
    assert run.status is dg.DagsterRunStatus.SUCCESS
    assert "gate" in {evaluation.asset_key.path[-1] for evaluation in evaluations if not evaluation.passed}


def test_a_rejection_is_final(failed: Site, copied: Copy) -> None:
    site = copied(failed)
    promotion = ("promote", NAME, site.artifact, "--to", "shadow", "--expect", 0, "--reason", "it looks good")
    assert site.command(*promotion).code == 1
    again = site.run(NEXT_WEEK, code=1)
    assert (again.executed, again.last["stage"]) == (set(), "rejected")


def test_a_rollback_restores_the_production_before(second: Site, copied: Copy) -> None:
    site = copied(second)
    before = site.production()
    for stage in ("shadow", "canary"):
        site.promote(stage, expect=0)
    assert site.promote("production", expect=1)["generation"] == 2
    assert site.production() == site.artifact != before

    restored = site.document("rollback", NAME, "--reason", "it misroutes")
    assert (restored["digest"], restored["generation"]) == (before, 3)
    assert site.production() == before
    stages = {entry["artifact"]: entry["stage"] for entry in site.document("registry", "list", NAME)}
    assert stages == {before: "production", site.artifact: "retired"}


def test_lineage_of_the_served_artifact_ends_at_the_source_query(second: Site) -> None:
    walked = second.document("lineage", second.artifact)
    nodes = walked["nodes"]
    assert (nodes[0]["step"], nodes[0]["output"]) == ("export", second.artifact)
    assert {needed for node in nodes for needed in node["inputs"].values()} <= {node["output"] for node in nodes}
    assert {node["step"] for node in nodes if not node["inputs"]} == {"snapshot", "base_model", "eval_set"}
    assert walked["source"]["query"] == "SELECT * FROM tickets"
    assert walked["source"]["window"]["end"] == "2026-10-19T00:00:00+00:00"


def test_a_production_moved_in_the_middle_of_a_run_changes_nothing_for_it(first: Site, copied: Copy) -> None:
    site = copied(first)
    with open_home(site.home) as store:
        assert _gated_against(site, store, release_before="gate") == {"digest": None, "generation": 0}
        assert _gated_against(site, store, release_before=None) == {"digest": site.artifact, "generation": 1}


def _gated_against(site: Site, store: Store, release_before: str | None) -> Any:
    """Judge in one run, release the candidate before one of its stages, and return what it was gated against."""
    cycle = Cycle(pipelines.load(site.file), store, Observers(()), bindings.SUBPROCESS_LAUNCHER)
    run = RunContext(f"released-before-{release_before}", NAME, date.fromisoformat(WEEK))
    for name in ("base_model", "evaluate", "gate"):
        if name == release_before:
            site.promote("production", expect=0)
        done = run_stage(cycle, BY_NAME[name], run, {needed: site.outputs[needed] for needed in BY_NAME[name].after})
    return json.loads(store.trees.read(done.output, "gate.json"))["production"]
