"""Moves that a person makes in the UI: an asset, its configuration, and what is shown afterwards."""

from typing import Any

import dagster as dg
import pytest

from ftpipeline.receipts import SigningKey
from ftpipeline_tests.orchestration.location import Location, failure
from ftpipeline_tests.registry.world import World

WHO = {"reason": "it answers better", "actor": "ana"}


@pytest.fixture
def world(location: Location) -> World:
    home, name = location.store.home, location.pipeline.name
    return World(location.store.database, home.store_root, name, SigningKey.of_home(home.root))


def decide(location: Location, move: str, **config: Any) -> dg.ExecuteInProcessResult:
    """Materialise the asset of a move alone, as the launchpad does."""
    key = dg.AssetKey([location.pipeline.name, move])
    return location.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=location.instance,
        asset_selection=[key],
        run_config={"ops": {"__".join(key.path): {"config": WHO | config}}},
        raise_on_error=False,
    )


def shown(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    (event,) = result.get_asset_materialization_events()
    return dict(event.materialization.metadata)


def refusal(result: dg.ExecuteInProcessResult) -> tuple[str, str]:
    """Return the class of the error that a run was refused with, and its one line."""
    data = failure(result).step_failure_data.user_failure_data
    assert data is not None
    assert data.description is not None
    return str(data.metadata["error"].value), data.description


def test_a_promotion_is_made_with_the_reason_and_the_generation_of_the_launchpad(
    location: Location, world: World
) -> None:
    world.register("a")
    result = decide(location, "promotion", artifact=world.artifact("a"), to="production", expect=0)
    assert result.success
    last = world.registry.history(world.name)[-1]
    assert (last.to_stage, last.reason, last.actor) == ("production", *WHO.values())
    assert world.holds("production") == world.artifact("a")


def test_a_move_shows_stages_and_history_there_and_on_the_registered_model(location: Location, world: World) -> None:
    world.register("a")
    result = decide(location, "promotion", artifact=world.artifact("a")[:24], to="production", expect=0)
    records = [record.data for record in shown(result)["stage history"].value.records]
    assert [record["to"] for record in records] == ["production", "candidate"]
    assert records[0]["reason"] == WHO["reason"]
    (seen,) = location.instance.fetch_observations(location.key("register"), limit=5).records
    assert seen.asset_observation is not None
    assert "stage history" in seen.asset_observation.metadata
    assert seen.partition_key == world.registry.entry(world.name, world.artifact("a")).week


def test_a_rollback_and_a_rejection_are_assets_too(location: Location, world: World) -> None:
    world.release("a")
    world.release("b")
    world.register("c")
    assert decide(location, "rollback", expect=2).success
    assert world.holds("production") == world.artifact("a")
    assert decide(location, "rejection", artifact=world.artifact("c")).success
    assert world.stage("c") == "rejected"


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"to": "production", "expect": 1}, "SkippedStageError"),
        ({"to": "shadow", "expect": 7}, "StaleGenerationError"),
        ({"to": "staging", "expect": 0}, "UnknownNameError"),
        ({"to": "shadow", "expect": 0, "reason": " "}, "InputError"),
        ({"to": "shadow", "expect": 0, "artifact": "03"}, "UnknownNameError"),
    ],
)
def test_a_refused_move_is_a_failure_of_one_line_and_moves_nothing(
    location: Location, world: World, config: dict[str, Any], error: str
) -> None:
    world.release("a")
    world.register("b")
    before = world.registry.pointers(world.name)
    name, line = refusal(decide(location, "promotion", **{"artifact": world.artifact("b")} | config))
    assert name == error
    assert "\n" not in line
    assert world.registry.pointers(world.name) == before
