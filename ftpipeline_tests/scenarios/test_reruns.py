"""What a second run does, and what moves between two weeks: whole cycles of a tiny pipeline on the command line."""

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle import bindings
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.stages import BY_NAME, STAGES, run_stage
from ftpipeline.orchestration.run import persistent_instance
from ftpipeline.records import RunContext, StepResult
from ftpipeline.store.home import Home, Store
from ftpipeline_tests.cli.command import Outcome, ftpipeline
from ftpipeline_tests.tiny_pipeline import NEXT_WEEK, WEEK, build_tiny_pipeline, write_pipeline

NAME = "tiny"
_SHARED = {"base_model", "eval_task", "eval_regression", "eval_safety"}
_ALL = {stage.name for stage in STAGES}
_TRAIN = {
    "seed": 1,
    "lr": 0.01,
    "max_steps": 60,
    "batch_size": 8,
    "max_length": 16,
    "modules_to_save": ["classifier", "pooler"],
    "lora": {"r": 4, "lora_alpha": 8, "target_modules": ["query", "key", "value"]},
}
_GATES = {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 1.0, "safety_max_drop": 1.0}
_RETICENT = {"max_abstain": 0.4}  # a first release that often abstains leaves the second something to gain


class Deaf:
    """Hears nothing of the steps."""

    def started(self, step: str) -> None: ...

    def progress(self, step: str, done: int, total: int, note: str = "") -> None: ...

    def finished(self, result: StepResult) -> None: ...


@dataclass(frozen=True)
class Site:
    """A pipeline and its home, in a folder of their own.

    Attributes:
        folder: of both.
        last: what the last run of this site, or of the one that it is a copy of, printed.
    """

    folder: Path
    last: Any = None

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def declare(self, **sections: Any) -> None:
        """Write the pipeline file anew; it abstains seldom, unless the sections say otherwise."""
        write_pipeline(self.folder / "pipeline.yaml", **{"train": _TRAIN, "gates": _GATES, **sections})

    def run(self, week: str, *options: str) -> Outcome:
        return ftpipeline("run", self.folder / "pipeline.yaml", "--week", week, "--home", self.home, *options)

    def rerun(self, week: str, code: int = 0) -> Any:
        """Run a week and return its document."""
        done = self.run(week, "--json")
        assert done.code == code, done.stderr
        return done.document

    def move(self, *arguments: object) -> Any:
        """Run a verb of the registry and return its document."""
        done = ftpipeline(*arguments, "--home", self.home, "--json")
        assert done.code == 0, done.stderr
        return done.document

    def promote(self, artifact: str, to: str, expect: int) -> Any:
        arguments = ("--to", to, "--expect", expect, "--reason", "it is better")
        return self.move("promote", NAME, artifact, *arguments)

    def production(self) -> str:
        return str(self.move("resolve", f"{NAME}@production")["digest"])

    def copy(self, folder: Path, last: Any = None) -> "Site":
        return Site(Path(shutil.copytree(self.folder, folder)), last if last is not None else self.last)


def executed(document: Any) -> set[str]:
    return {step["name"] for step in document["steps"] if step["action"] == "executed"}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The first week, trained and registered."""
    folder = tmp_path_factory.mktemp("first") / "site"
    build_tiny_pipeline(folder)
    site = Site(folder)
    site.declare(abstention=_RETICENT)
    return Site(folder, site.rerun(WEEK))


@pytest.fixture(scope="module")
def released(first: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The first week in production."""
    site = first.copy(tmp_path_factory.mktemp("released") / "site")
    site.promote(first.last["artifact"], "production", 0)
    return site


@pytest.fixture(scope="module")
def second(released: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The next week, trained and gated against the first."""
    site = released.copy(tmp_path_factory.mktemp("second") / "site")
    site.declare()
    return Site(site.folder, site.rerun(NEXT_WEEK))


Copy = Callable[[Site], Site]


@pytest.fixture
def copied(tmp_path: Path) -> Copy:
    return lambda site: site.copy(tmp_path / "site")


def open_store(site: Site) -> Any:
    return closing(Home(site.home).open())


@pytest.fixture
def no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The surroundings choose no place, and what a test puts there is taken back."""
    for name in ("FTPIPELINE_STORE", "FTPIPELINE_DATABASE", "DAGSTER_HOME"):
        monkeypatch.setenv(name, "")


def test_the_first_run_of_a_week_executes_every_step(first: Site) -> None:
    assert [step["name"] for step in first.last["steps"] if step["action"] != "executed"] == []
    assert {step["name"] for step in first.last["steps"]} == _ALL
    assert (first.last["verdict"], first.last["stage"]) == ("first_release", "candidate")


def test_a_second_run_of_a_week_executes_nothing_and_says_so(first: Site, copied: Copy) -> None:
    site = copied(first)
    again = site.rerun(WEEK)
    assert executed(again) == set()
    assert {step["name"]: step["digest"] for step in again["steps"]} == {
        step["name"]: step["digest"] for step in first.last["steps"]
    }
    said = site.run(WEEK)
    assert said.code == 0
    assert f"0 steps executed, {len(STAGES)} reused" in said.stdout.splitlines()


def test_other_evaluation_parameters_only_evaluate_and_decide_again(first: Site, copied: Copy) -> None:
    site = copied(first)
    site.declare(abstention=_RETICENT, evaluation={"batch_size": 7})
    assert executed(site.rerun(WEEK)) == {"manifest", "evaluate", "gate", "register"}


def test_other_gates_only_decide_again(first: Site, copied: Copy) -> None:
    site = copied(first)
    site.declare(abstention=_RETICENT, gates=_GATES | {"safety_max_drop": 0.25})
    assert executed(site.rerun(WEEK)) == {"manifest", "gate", "register"}


def test_another_week_executes_everything_but_what_weeks_share(second: Site) -> None:
    assert executed(second.last) == _ALL - _SHARED


def test_the_promoted_week_is_already_production(released: Site, copied: Copy) -> None:
    site = copied(released)
    again = site.rerun(WEEK, code=0)
    assert (again["verdict"], again["stage"]) == ("already_production", "production")
    assert executed(again) == {"gate"}  # against another production than before; nothing is measured or made again
    assert again["reasons"] == []


def test_the_next_week_is_gated_against_production_on_the_same_sets(second: Site, no_places: None) -> None:
    digests = {step["name"]: step["digest"] for step in second.last["steps"]}
    with open_store(second) as store:
        gated = json.loads(store.trees.read(digests["gate"], "gate.json"))
        reports = [
            json.loads(store.trees.read(digests["evaluate"], f"{side}.json")) for side in ("candidate", "production")
        ]
    assert gated["production"] == {"digest": second.production(), "generation": 1}
    assert [report["artifact"] for report in reports] == [second.last["artifact"], second.production()]
    assert reports[0]["eval_sets"] == reports[1]["eval_sets"]
    gain = reports[0]["metrics"]["task"] - reports[1]["metrics"]["task"]
    assert float(second.last["differences"]["task"]) == pytest.approx(gain)
    assert second.last["verdict"] == "pass"


def test_a_failed_gate_rejects_for_good_and_is_no_failed_run(second: Site, copied: Copy, no_places: None) -> None:
    site = copied(second)
    site.declare(gates=_GATES | {"task_min_gain_vs_prod": 0.9})
    failed = site.rerun(NEXT_WEEK, code=1)
    assert executed(failed) == {"manifest", "gate", "register"}
    assert (failed["verdict"], failed["stage"]) == ("fail", "rejected")
    assert [reason["code"] for reason in failed["reasons"]] == ["task_gain_below_threshold"]

    entry = site.move("registry", "list", NAME)[-1]
    assert (entry["stage"], entry["reasons"]) == ("rejected", failed["reasons"])
    refused = ftpipeline(
        "promote", NAME, failed["artifact"], "--to", "shadow", "--expect", 0, "--reason", "please", "--home", site.home
    )
    assert refused.code == 1
    again = site.rerun(NEXT_WEEK, code=1)
    assert (executed(again), again["stage"]) == (set(), "rejected")
    assert site.production() == second.production()

    with persistent_instance(Home(site.home)) as instance:
        run = instance.get_run_by_id(failed["dagster_run_id"])
        checks = instance.all_logs(failed["dagster_run_id"], of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        evaluations = [entry.get_dagster_event().asset_check_evaluation_data for entry in checks]
    assert run is not None
    assert run.status is dg.DagsterRunStatus.SUCCESS
    assert {each.asset_key.path[-1] for each in evaluations if not each.passed} == {"gate"}


def test_a_rollback_restores_the_production_before(second: Site, copied: Copy) -> None:
    site, artifact = copied(second), second.last["artifact"]
    before = site.production()
    for stage in ("shadow", "canary"):
        site.promote(artifact, stage, 0)
    assert site.promote(artifact, "production", 1)["generation"] == 2
    assert site.production() == artifact != before

    restored = site.move("rollback", NAME, "--reason", "it misroutes")
    assert (restored["digest"], restored["generation"]) == (before, 3)
    assert site.production() == before
    stages = {entry["artifact"]: entry["stage"] for entry in site.move("registry", "list", NAME)}
    assert stages == {before: "production", artifact: "retired"}


def test_lineage_of_the_served_artifact_ends_at_the_source_query(second: Site) -> None:
    walked = second.move("lineage", second.last["artifact"])
    outputs = {node["output"] for node in walked["nodes"]}
    assert walked["nodes"][0]["output"] == walked["digest"] == second.last["artifact"]
    assert {node["step"] for node in walked["nodes"]} >= {
        "export",
        "train",
        "split",
        "curate",
        "snapshot",
        "base_model",
    }
    assert {needed for node in walked["nodes"] for needed in node["inputs"].values()} <= outputs
    assert {node["step"] for node in walked["nodes"] if not node["inputs"]} == {"snapshot", "base_model", "eval_set"}
    assert walked["source"]["query"] == "SELECT * FROM tickets"
    assert walked["source"]["window"]["end"] == "2026-10-19T00:00:00+00:00"


def test_what_moves_in_the_middle_of_a_run_is_not_what_it_is_gated_against(
    first: Site, copied: Copy, no_places: None
) -> None:
    site = copied(first)
    digests = {step["name"]: step["digest"] for step in first.last["steps"]}
    with open_store(site) as store:
        assert _gated_production(site, store, digests, promote_before="gate") == {"digest": None, "generation": 0}
        moved = {"digest": first.last["artifact"], "generation": 1}
        assert _gated_production(site, store, digests, promote_before=None) == moved


def _gated_production(site: Site, store: Store, digests: dict[str, Any], promote_before: str | None) -> Any:
    """Judge in one run, release the candidate before one of its stages, and return what it was gated against."""
    pipeline = pipelines.load(site.folder / "pipeline.yaml")
    cycle = Cycle(pipeline, store, Deaf(), bindings.SUBPROCESS_LAUNCHER)
    run = RunContext(f"released-before-{promote_before}", NAME, date.fromisoformat(WEEK))
    for name in ("base_model", "evaluate", "gate"):
        if name == promote_before:
            site.promote(digests["export"], "production", 0)
        stage = BY_NAME[name]
        done = run_stage(cycle, stage, run, {needed: digests[needed] for needed in stage.after})
    return json.loads(store.trees.read(done.output, "gate.json"))["production"]
