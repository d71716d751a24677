"""Trainings that go wrong without a word of the libraries: each ends through the real worker with its own error."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from safetensors.numpy import load_file, save_file

from ftpipeline.backends.onnx_export import OnnxExporter
from ftpipeline.cycle.launch import SubprocessLauncher
from ftpipeline.errors import (
    AdapterKeysError,
    BaseModelMismatchError,
    DeadTargetError,
    FtpipelineError,
    InputError,
    LossExplosionError,
    ModelFilesError,
    NoLearningError,
    NonFiniteError,
    OverfittingError,
    TokenizerMismatchError,
    TrainingFailedError,
)
from ftpipeline.records import Facts
from ftpipeline.steps.train import train
from ftpipeline_tests.backends.conftest import export_params
from ftpipeline_tests.tiny_model import LABELS, build_tiny_bert, build_tiny_split, shard, tiny_train_params

STEPS = 50
"""Optimizer steps within which every fault must show."""

NO_WARMUP = {"max_steps": STEPS, "warmup_steps": 0}


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    return {"base_model": build_tiny_bert(tmp_path / "base"), "split": build_tiny_split(tmp_path / "split")}


def start(inputs: dict[str, Path], params: dict[str, Any] | None = None, **settings: Any) -> Facts:
    """Train through the worker, into `out` beside the inputs."""
    out = inputs["split"].with_name("out")
    out.mkdir()
    params = params or tiny_train_params(inputs["base_model"], **settings)
    return train(inputs, params, out, launcher=SubprocessLauncher())


def nan_gradient(inputs: dict[str, Path]) -> dict[str, Any]:
    """A base whose loss is finite and whose gradient is not: constant inputs are normed, by next to nothing."""
    base = inputs["base_model"]
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-30}))
    weights = load_file(base / "model.safetensors")
    for name in ("encoder.layer.0.output.LayerNorm.weight", "encoder.layer.0.output.LayerNorm.bias"):
        weights[name] = np.zeros_like(weights[name])
    weights["encoder.layer.1.output.LayerNorm.weight"] *= 1e30
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    return {}


def overfit_set(inputs: dict[str, Path]) -> dict[str, Any]:
    """Validation rows whose labels are systematically not those that the training rows teach."""
    path = inputs["split"] / "validation.parquet"
    table = pyarrow.parquet.read_table(path)
    wrong = [LABELS[(LABELS.index(label) + 1) % len(LABELS)] for label in table["label"].to_pylist()]
    pyarrow.parquet.write_table(table.set_column(2, "label", pyarrow.array(wrong)), path)
    return {"evaluation_steps": 10}


@pytest.mark.parametrize(
    ("spoil", "settings", "error", "words"),
    [
        (nan_gradient, {}, NonFiniteError, "grad_norm is (nan|inf) at step 1"),
        (None, {"lr": 10.0}, LossExplosionError, "at step 1[0-9]"),
        (None, {"lr": 1e-7, "checks": {"no_learning_steps": 30}}, NoLearningError, "within 30 steps"),
        (None, {"lr": 1e-12, "max_steps": 3}, NoLearningError, "exactly as its base"),
        (overfit_set, {}, OverfittingError, "at step 30 after 3 evaluations"),
    ],
)
def test_a_training_that_cannot_become_good_ends_red_within_fifty_steps_and_leaves_no_adapter(
    inputs: dict[str, Path],
    spoil: Callable[[dict[str, Path]], dict[str, Any]] | None,
    settings: dict[str, Any],
    error: type[TrainingFailedError],
    words: str,
) -> None:
    more = spoil(inputs) if spoil else {}
    with pytest.raises(error, match=words) as caught:
        start(inputs, **NO_WARMUP | settings | more)
    assert type(caught.value) is error
    assert caught.value.evidence
    left = {path.name for path in inputs["split"].with_name("out").iterdir()}
    assert left == {"metrics.jsonl", "evaluations.jsonl"}


def test_a_dead_target_ends_red_before_the_first_step_with_the_matches_of_all(inputs: dict[str, Path]) -> None:
    lora = {"r": 4, "lora_alpha": 8, "lora_dropout": 0.0, "target_modules": ["query", "gate_prj"]}
    with pytest.raises(DeadTargetError, match=r"matches: query: 2, gate_prj: 0\)") as caught:
        start(inputs, lora=lora)
    assert caught.value.evidence == {"kind": "dead_target", "matches": {"query": 2, "gate_prj": 0}}


def template_edit(inputs: dict[str, Path]) -> None:
    (inputs["base_model"] / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")


def missing_shard(inputs: dict[str, Path]) -> None:
    (shard(inputs["base_model"]) / "model-00002-of-00002.safetensors").unlink()


def no_weights(inputs: dict[str, Path]) -> None:
    (inputs["base_model"] / "model.safetensors").unlink()


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (template_edit, TokenizerMismatchError, "the manifest pins"),
        (missing_shard, ModelFilesError, "has no model-00002-of-00002"),
        (no_weights, ModelFilesError, "has no model.safetensors"),
    ],
)
def test_a_base_model_that_is_not_the_pinned_one_or_not_whole_ends_red_before_training(
    inputs: dict[str, Path], spoil: Callable[[dict[str, Path]], None], error: type[FtpipelineError], words: str
) -> None:
    params = tiny_train_params(inputs["base_model"])
    spoil(inputs)
    with pytest.raises(error, match=words):
        start(inputs, params)
    assert not any(inputs["split"].with_name("out").iterdir())


def test_fp16_on_a_cpu_ends_red_before_the_model_is_loaded(inputs: dict[str, Path]) -> None:
    (inputs["base_model"] / "config.json").write_text("{}")  # would be refused as soon as it were loaded
    with pytest.raises(InputError, match=r"train\.precision fp16"):
        start(inputs, precision="fp16")


def test_a_trained_adapter_is_exported_on_its_own_base_only_and_with_its_own_keys_only(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    facts = start(inputs, max_steps=4)
    assert facts["drift"]["kl"] > 0.0
    adapter, exporter = tmp_path / "out" / "adapter", OnnxExporter()
    other = Path(shutil.copytree(inputs["base_model"], tmp_path / "other"))
    weights = load_file(other / "model.safetensors")
    save_file({name: weight * 1.01 for name, weight in weights.items()}, other / "model.safetensors")
    with pytest.raises(BaseModelMismatchError, match="was trained on base model"):
        exporter.export(other, adapter, export_params("none"), tmp_path / "export")
    tensors = load_file(adapter / "adapter_model.safetensors")
    renamed = {name.replace("base_model.model", "base_model"): tensor for name, tensor in tensors.items()}
    save_file(renamed, adapter / "adapter_model.safetensors")
    with pytest.raises(AdapterKeysError, match="keys missing"):
        exporter.export(inputs["base_model"], adapter, export_params("none"), tmp_path / "export")
    assert not (tmp_path / "export").exists()
