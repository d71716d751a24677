"""A BERT of two layers with random weights, and what it takes to train it: small enough to be built in every test.

Neither torch nor transformers is loaded; the same arguments give the same bytes.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from safetensors.numpy import load_file, save_file

from ftpipeline.digest import hex_of
from ftpipeline.example.tiny_bert import write_tiny_bert
from ftpipeline.steps.tokenizer import tokenizer_sha256

LABELS = ("billing", "login", "shipping")
WORDS = (
    *("invoice", "refund", "charge", "card", "payment"),
    *("password", "account", "reset", "locked", "email"),
    *("parcel", "delivery", "courier", "tracking", "late"),
    *("my", "the", "is", "please", "help", "with", "a", "not"),
)


def build_tiny_bert(folder: Path, *, words: Sequence[str] = WORDS) -> Path:
    """Write a base model whose vocabulary is `words` and single characters; return `folder`."""
    return write_tiny_bert(folder, words)


def shard(base_model: Path) -> Path:
    """Cut the weights of a base model into two files with an index; return the folder."""
    whole = base_model / "model.safetensors"
    weights = load_file(whole)
    whole.unlink()
    names = [f"model-{number:05d}-of-00002.safetensors" for number in (1, 2)]
    places = {tensor: names[index % 2] for index, tensor in enumerate(sorted(weights))}
    for name in names:
        held = {tensor: weights[tensor] for tensor in weights if places[tensor] == name}
        save_file(held, base_model / name, metadata={"format": "pt"})
    _write_json(base_model / "model.safetensors.index.json", {"metadata": {}, "weight_map": places})
    return base_model


def build_tiny_split(folder: Path, *, rows: int = 48, labels: Sequence[str] = LABELS) -> Path:
    """Write a clean split of separable rows, two thirds of them for training; return `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pyarrow.Table.from_pylist([_row(index, labels) for index in range(rows)])
    cut = rows * 2 // 3
    pyarrow.parquet.write_table(table.slice(0, cut), folder / "train.parquet")
    pyarrow.parquet.write_table(table.slice(cut), folder / "validation.parquet")
    _write_json(folder / "leakage.json", {"verdict": "clean"})
    return folder


def tiny_train_params(base_model: Path, **train: Any) -> dict[str, Any]:
    """Return the train step's parameters for a tiny model; keyword arguments replace fields of `train`."""
    settings = {
        "seed": 7,
        "lr": 0.03,
        "epochs": None,
        "max_steps": 40,
        "batch_size": 8,
        "max_length": 16,
        "scheduler": "cosine",
        "warmup_steps": 2,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "modules_to_save": ["classifier", "pooler"],
        "lora": {"r": 4, "lora_alpha": 8, "lora_dropout": 0.05, "target_modules": ["query", "key", "value"]},
    }
    return {
        "task": "sequence_classification",
        "labels": list(LABELS),
        "tokenizer_sha256": hex_of(tokenizer_sha256(base_model)),
        "train": settings | train,
    }


def _row(index: int, labels: Sequence[str]) -> dict[str, str]:
    label = index % len(labels)
    own = WORDS[5 * (label % len(LABELS)) :][:5]
    text = f"{own[index % 5]} {own[(index // 5 + 1) % 5]} please help with my {own[(index // 3) % 5]}"
    return {"id": f"T-{index:04d}", "text": text, "label": labels[label]}


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
