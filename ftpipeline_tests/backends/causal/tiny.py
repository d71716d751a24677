"""A tiny Llama at work: an adapter with random weights, the parameters of its steps, and the records of its exports."""

from pathlib import Path
from typing import Any

import torch
from peft import TaskType

from ftpipeline.backends import adapter, lora
from ftpipeline.backends.causal_model import load_causal
from ftpipeline.digest import hex_of
from ftpipeline.schema import Train
from ftpipeline.steps.artifact import ExportRecord, write_export_record
from ftpipeline.steps.base_pin import base_tree
from ftpipeline.steps.calibrate import Calibration
from ftpipeline.steps.tokenizer import tokenizer_sha256
from ftpipeline_tests.tiny_model import LABELS

MAX_LENGTH = 96
PROMPT = "{text}\nQueue: {labels}"
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def train_settings(**changes: Any) -> dict[str, Any]:
    """Return settings of `train` with which the tiny model learns its labels in a few seconds."""
    settings = {
        "seed": 7,
        "lr": 0.01,
        "max_steps": 40,
        "batch_size": 8,
        "max_length": MAX_LENGTH,
        "scheduler": "cosine",
        "warmup_steps": 2,
        "prompt": PROMPT,
        "lora": {"r": 8, "lora_alpha": 16, "target_modules": LINEAR},
    }
    return settings | changes


def train_params(base_model: Path, **train: Any) -> dict[str, Any]:
    """Return the train step's parameters; keyword arguments replace fields of `train`."""
    return {
        "task": "causal_lm",
        "labels": list(LABELS),
        "tokenizer_sha256": hex_of(tokenizer_sha256(base_model)),
        "train": train_settings(**train),
    }


def export_params(quantize: str = "int8", *, merge_adapter: bool = True) -> dict[str, Any]:
    """Return the exporter's parameters."""
    export = {"merge_adapter": merge_adapter, "quantize": quantize}
    return {"task": "causal_lm", "labels": list(LABELS), "max_length": MAX_LENGTH, "export": export}


def build_adapter(folder: Path, base_model: Path, *, scale: float = 0.1, **train: Any) -> Path:
    """Write an adapter whose weights are normal with deviation `scale`, from a generator of fixed seed."""
    settings = Train.model_validate(train_settings(**train))
    built = lora.attach_new(load_causal(base_model), settings, TaskType.CAUSAL_LM, base_tree(base_model))
    generator = torch.Generator().manual_seed(0)
    for _, weight in sorted(built.model.named_parameters()):
        if weight.requires_grad:
            weight.data = torch.randn(weight.shape, generator=generator) * scale
    adapter.save(built.model, folder)
    return folder


def write_record(folder: Path, base_model: Path, **changes: Any) -> Path:
    """Write the record of an export that is calibrated to abstain never; return the folder."""
    record = {
        "task": "causal_lm",
        "labels": LABELS,
        "max_length": MAX_LENGTH,
        "quantize": "int8",
        "base_model": base_tree(base_model),
        "prompt": PROMPT,
        "tokenizer_sha256": hex_of(tokenizer_sha256(folder)),
        "abstention": Calibration(0.0, 1, 0, 0.0),
    }
    write_export_record(folder, ExportRecord.model_validate(record | changes))
    return folder
