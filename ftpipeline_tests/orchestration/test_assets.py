"""The assets of a pipeline: what Dagster is told of them, and what a run leaves behind."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.digest import Digest, canonical_json
from ftpipeline.orchestration.build import build_definitions
from ftpipeline.orchestration.io_manager import asset_name
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.store.home import Home
from ftpipeline_tests.orchestration.location import (
    ALL_STAGES,
    DATA_STAGES,
    SHARED_STAGES,
    Location,
    failure,
)
from ftpipeline_tests.registry.world import World
from ftpipeline_tests.steps.gate_examples import answers_of, expected_of, measured, paired
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline, write_pipeline

DECIDED = ("promotion", "rollback", "rejection", "rescored")
"""Assets beside the week's own, in a group that is not materialised as a whole."""
MEASURED = ("seed_result", "noise_band")
"""Assets that train the week under other seeds, in another such group."""


def groups(definitions: dg.Definitions) -> dict[str, str | None]:
    """Return the group of every asset."""
    return {spec.key.to_user_string(): spec.group_name for spec in definitions.resolve_all_asset_specs()}


def test_weekly_assets_are_keyed_by_pipeline_and_shared_ones_by_their_own_names(location: Location) -> None:
    weekly = {f"tiny/{stage}" for stage in ALL_STAGES if stage not in SHARED_STAGES}
    sets = {f"eval_set/tiny-{name}" for name in ("gold", "regression", "safety")}
    beside = {"quarantine", *(f"tiny/{name}" for name in (*DECIDED, *MEASURED))}
    assert groups(location.definitions).keys() == weekly | sets | {"base_model/tiny-bert"} | beside


def test_the_group_of_a_pipeline_holds_everything_that_its_week_needs(location: Location) -> None:
    found = groups(location.definitions)
    assert {found.pop(f"tiny/{name}") for name in DECIDED} == {"tiny_release"}
    assert {found.pop(f"tiny/{name}") for name in MEASURED} == {"tiny_noise"}
    assert found.pop("quarantine") == "quarantine"
    assert set(found.values()) == {"tiny"}


def test_only_weekly_assets_have_partitions(location: Location) -> None:
    graph = location.definitions.resolve_asset_graph()
    partitioned = {stage for stage in ALL_STAGES if graph.get(location.key(stage)).is_partitioned}
    assert partitioned == set(ALL_STAGES) - set(SHARED_STAGES)


def test_what_two_pipelines_share_is_one_asset_and_part_of_both_jobs(tmp_path: Path) -> None:
    shared = {"base_model": {"name": "bert", "source": "folder://base"}}
    build_tiny_pipeline(tmp_path)
    sets = pipelines.load(write_pipeline(tmp_path / "one.yaml", name="one", **shared)).file.eval_sets
    same_sets = {"eval_sets": sets.model_dump(mode="json")}
    write_pipeline(tmp_path / "two.yaml", name="two", **shared, **same_sets)
    workbench = Workbench(Home(tmp_path / "home"))
    both = dg.Definitions.merge(
        *(build_definitions(pipelines.load(tmp_path / f"{name}.yaml"), workbench) for name in ("one", "two"))
    )
    found = groups(both)
    assert found.pop("quarantine") == "quarantine"
    assert len(found) == 2 * (len(ALL_STAGES) - len(SHARED_STAGES) + len(DECIDED) + len(MEASURED)) + len(SHARED_STAGES)
    for name in ("one", "two"):
        job = both.resolve_job_def(f"{name}_job")
        assert {key.to_user_string() for key in job.asset_layer.executable_asset_keys} >= {
            "base_model/bert",
            "eval_set/one-gold",
            f"{name}/register",
        }


@pytest.mark.parametrize(
    ("section", "other"),
    [
        ("base_model", {"name": "tiny-bert", "source": "folder://elsewhere"}),
        ("labels", ["login", "billing", "shipping"]),
    ],
)
def test_one_name_for_two_different_things_is_refused(tmp_path: Path, section: str, other: Any) -> None:
    workbench = Workbench(Home(tmp_path / "home"))
    build_definitions(pipelines.load(write_pipeline(tmp_path / "one.yaml")), workbench)
    different = pipelines.load(write_pipeline(tmp_path / "two.yaml", **{section: other}))
    with pytest.raises(dg.DagsterInvalidDefinitionError, match=r"is declared differently by .*two\.yaml and another"):
        build_definitions(different, workbench)


def test_an_asset_holds_the_digest_as_its_data_version(location: Location) -> None:
    result = location.run(*DATA_STAGES)
    for stage in DATA_STAGES:
        digest = location.digest(result, stage)
        record = location.instance.get_latest_materialization_event(location.key(stage))
        assert record is not None
        assert record.asset_materialization is not None
        assert (record.asset_materialization.tags or {})["dagster/data_version"] == digest
        assert location.store.trees.is_present(digest)


def test_a_second_run_of_a_week_says_that_it_reuses_everything(location: Location) -> None:
    first, second = location.run(*DATA_STAGES), location.run(*DATA_STAGES)
    for stage in DATA_STAGES:
        assert location.shown(first, stage)["action"].value == "executed"
        assert location.shown(second, stage)["action"].value == "reused"
        assert location.digest(first, stage) == location.digest(second, stage)


def test_what_a_stage_shows_is_stored_once(location: Location) -> None:
    result = location.run("base_model")
    key = location.shown(result, "base_model")["step key"].value
    assert len([record for record in location.log(result) if str(key) in record]) == 1


def test_no_ticket_text_is_in_the_event_log_of_the_data_stages(location: Location) -> None:
    result = location.run(*DATA_STAGES)
    assert result.success
    assert not location.texts_in_log(result)


def test_the_snapshot_shows_the_query_it_is_the_answer_to(location: Location) -> None:
    query = location.shown(location.run("snapshot"), "snapshot")["source query"].value
    assert "SELECT * FROM tickets" in str(query)
    assert "until 2026-10-12T00:00:00+00:00" in str(query)


def test_a_refusal_is_a_failure_of_one_line_that_carries_name_and_exit_code(location: Location) -> None:
    (location.pipeline.path.parent / "tickets.duckdb").unlink()
    data = failure(location.run("snapshot")).step_failure_data.user_failure_data
    assert data is not None
    assert data.description is not None
    assert "tickets.duckdb" in data.description
    assert "\n" not in data.description
    assert data.metadata["error"].value == "SourceUnavailableError"
    assert data.metadata["exit_code"].value == 3


def test_a_failed_gate_leaves_the_run_successful_with_a_failed_check(location: Location) -> None:
    assert location.run(*DATA_STAGES).success
    world = World(location.store.database, location.store.home.store_root, location.pipeline.name)
    world.release("good")
    candidate = world.artifact("worse")
    for stage, tree in (("export", candidate), ("evaluate", reports_of_a_worse(world, candidate))):
        location.store.pointers.put(asset_name(location.key(stage)), WEEK, "an earlier run", 0, tree)
    result = location.run("gate")
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert result.success
    assert (checks["gate_passed"].passed, checks["gate_passed"].severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert checks["not_quarantined"].passed
    assert location.shown(result, "gate")["verdict"].value == "fail"


def reports_of_a_worse(world: World, candidate: Digest) -> Digest:
    """Store the reports of a candidate that answers worse than production."""
    folder = world.store / "reports"
    folder.mkdir()
    expected, worse, good = expected_of(90), answers_of(90, 45), answers_of(90, 80)
    pairs = {role: each.to_json() for role, each in paired(expected, worse, good).items()}
    documents = {
        "candidate": measured(candidate, expected, worse),
        "production": measured(world.artifact("good"), expected, good),
        "pairs": pairs,
    }
    for name, document in documents.items():
        (folder / f"{name}.json").write_bytes(canonical_json(document))
    return world.trees.put(folder)
