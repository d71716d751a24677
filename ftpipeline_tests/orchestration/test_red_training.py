"""A training that went wrong, seen through Dagster: the run is red, says what the check saw, and registers nothing."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ftpipeline.registry.reader import RegistryReader
from ftpipeline_tests.orchestration.location import ALL_STAGES, DATA_STAGES, LEARNING, Location, failure, tiny_location

pytestmark = pytest.mark.slow


def registered(location: Location) -> list[Any]:
    """Return every entry of the registry."""
    store = location.store
    return RegistryReader(store.database, store.trees).entries()


@pytest.mark.parametrize(
    ("train", "error", "kind"),
    [
        ({"lr": 10.0, "warmup_steps": 0}, "LossExplosionError", "loss_explosion"),
        ({"lora": LEARNING["lora"] | {"target_modules": ["query", "gate_prj"]}}, "DeadTargetError", "dead_target"),
        ({"lr": 1e-12, "max_steps": 12, "checks": {"no_learning_steps": 12}}, "NoLearningError", "no_learning"),
    ],
)
def test_a_training_that_fails_a_check_is_red_with_its_evidence_and_nothing_is_registered(
    tmp_path: Path, train: dict[str, Any], error: str, kind: str
) -> None:
    with tiny_location(tmp_path, train={**LEARNING, **train}) as location:
        result = location.run(*ALL_STAGES)
        assert not result.success
        data = failure(result).step_failure_data.user_failure_data
        assert data is not None
        assert data.metadata["error"].value == error
        evidence = data.metadata["evidence"]
        assert isinstance(evidence, dg.JsonMetadataValue)
        assert isinstance(evidence.data, dict)
        assert evidence.data["kind"] == kind
        assert {key.path[-1] for key in materialised(result)}.isdisjoint({"train", "export", "gate", "register"})
        assert registered(location) == []


def materialised(result: dg.ExecuteInProcessResult) -> list[dg.AssetKey]:
    return [event.asset_key for event in result.get_asset_materialization_events() if event.asset_key is not None]


def test_a_base_model_that_is_not_the_one_of_the_manifest_is_refused_before_training(tmp_path: Path) -> None:
    with tiny_location(tmp_path) as location:
        assert location.run(*DATA_STAGES).success
        location.change_base_model()
        assert location.run("base_model").success
        data = failure(location.run("train")).step_failure_data.user_failure_data
        assert data is not None
        assert data.metadata["error"].value == "BaseModelMismatchError"
        assert "run the stage manifest again" in str(data.description)


def test_at_declared_steps_drift_and_regression_score_are_measured(tmp_path: Path) -> None:
    with tiny_location(tmp_path, train={**LEARNING, "max_steps": 20, "evaluation_steps": 10}) as location:
        result = location.run(*DATA_STAGES, "train")
        assert result.success
        (made,) = location.store.results.made(location.digest(result, "train"))
        assert made.inputs["eval_regression"] == location.digest(result, "eval_regression")
        lines = location.store.trees.read(made.output, "evaluations.jsonl").splitlines()
    evaluations = [json.loads(line) for line in lines]
    assert [evaluation["step"] for evaluation in evaluations] == [10, 20]
    assert all(evaluation["kl"] > 0.0 for evaluation in evaluations)
    assert all(0.0 <= evaluation["scores"]["regression_macro_f1"] <= 1.0 for evaluation in evaluations)
