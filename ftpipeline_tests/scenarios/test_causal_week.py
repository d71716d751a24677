"""A week of a causal model through the command line: confined steps make a GGUF file or an adapter, and score it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ftpipeline_tests.backends.causal.tiny import LINEAR
from ftpipeline_tests.cli.command import ftpipeline, open_home
from ftpipeline_tests.tiny_llama import build_tiny_llama
from ftpipeline_tests.tiny_pipeline import build_tiny_pipeline, write_pipeline

WEEK = "2026-W41"
_TRAIN = {
    "seed": 1,
    "lr": 0.01,
    "max_steps": 20,
    "batch_size": 8,
    "max_length": 96,
    "prompt": "{text}\nQueue: {labels}",
    "lora": {"r": 8, "lora_alpha": 16, "target_modules": LINEAR},
}
_SECTIONS: dict[str, Any] = {
    "task": "causal_lm",
    "base_model": {"name": "tiny-llama", "source": "folder://llama"},
    "train": _TRAIN,
    "evaluation": {"batch_size": 8, "max_new_tokens": 8},
    "abstention": {"max_abstain": 0.0},
    "gates": {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 1.0, "safety_max_drop": 1.0},
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("causal")
    build_tiny_pipeline(folder)
    build_tiny_llama(folder / "llama")
    return folder


def run(folder: Path, **export: Any) -> Any:
    """Run the week with an export section and return what the command printed."""
    pipeline = write_pipeline(folder / "pipeline.yaml", **_SECTIONS, export=export)
    done = ftpipeline("run", pipeline, "--week", WEEK, "--home", folder / "home", "--json")
    assert done.code == 0, done.stderr
    return done.document


def test_a_week_of_a_causal_model_ends_in_a_gguf_file_that_was_scored(folder: Path) -> None:
    document = run(folder, merge_adapter=True, quantize="int8")
    outputs = {step["name"]: step["digest"] for step in document["steps"]}
    assert document["verdict"] == "first_release"
    with open_home(folder / "home") as store:
        assert "model.gguf" in {entry.path for entry in store.trees.entries(outputs["export"])}
        report = json.loads(store.trees.read(outputs["evaluate"], "candidate.json"))
    assert report["scorer"].startswith("CausalScorer/1 on ")
    assert report["counts"]["task"]["unparsable"] <= report["counts"]["task"]["n"]
    again = run(folder, merge_adapter=True, quantize="int8")
    assert {step["action"] for step in again["steps"] if step["name"] != "register"} == {"reused"}


def test_an_adapter_alone_is_trained_once_and_scored_on_its_base(folder: Path) -> None:
    run(folder, merge_adapter=True, quantize="int8")
    document = run(folder, merge_adapter=False, quantize="none")
    actions = {step["name"]: step["action"] for step in document["steps"]}
    assert (actions["train"], actions["export"]) == ("reused", "executed")
    outputs = {step["name"]: step["digest"] for step in document["steps"]}
    with open_home(folder / "home") as store:
        files = {entry.path for entry in store.trees.entries(outputs["export"])}
        report = json.loads(store.trees.read(outputs["evaluate"], "candidate.json"))
    assert "adapter_model.safetensors" in files
    assert "adapter on its base" in report["scorer"]
