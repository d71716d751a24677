"""Four small trainings that read each other's checkpoints: the ones that `ftpipeline demo` lets diverge.

They route the tickets of a few queues that are easily mistaken for each other, with a base model so small that all four
train at once on a laptop. The learning rate of the first grows until its loss does, too; the second merges a checkpoint
of the first, the third one of the second, and the last reads of nobody.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ftpipeline.example.tiny_bert import write_tiny_bert

HOT, BLEND, SECOND_BLEND, STEADY = NAMES = ("router_hot", "router_blend", "router_second_blend", "router_steady")
"""Who diverges, who merges a checkpoint of it, who merges one of that, and who has nothing to do with it."""

QUEUES = ("shipping_cost", "shipping_delayed", "shipping_lost", "shipping_tracking")
TAINTED = 160
"""Optimizer step of the checkpoint of the first that the second merges; its divergence has begun by then."""

_MERGED, _MERGED_AT = 60, 45
_WORDS = 400
_EVAL_FILES = {"task": "gold_v1.csv", "regression": "regression_v1.csv", "safety": "safety_v1.csv"}
_TRAIN: Mapping[str, Any] = {
    "seed": 7,
    "lr": 0.003,
    "max_steps": 80,
    "batch_size": 16,
    "max_length": 32,
    "modules_to_save": ["classifier", "pooler"],
    "lora": {"r": 4, "lora_alpha": 4, "target_modules": ["query"]},
}
_LONG = {"max_steps": 5000, "batch_size": 96}


def write_fleet(folder: Path) -> dict[str, Path]:
    """Write the pipelines of the fleet, and what they are made from, into a folder beside the example's data.

    Args:
        folder: in the folder that `generate` wrote to; made if it is missing.

    Returns:
        The pipeline files, by name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for eval_set in _EVAL_FILES.values():
        _write_rows(folder.parent / eval_set, folder / eval_set)
    write_tiny_bert(folder / "base", _vocabulary(folder))
    files = {name: folder / f"{name}.yaml" for name in NAMES}
    for name, file in files.items():
        file.write_text(yaml.safe_dump(_document(name), sort_keys=False), encoding="utf-8")
    return files


def _document(name: str) -> dict[str, Any]:
    queues = ", ".join(f"'{queue}'" for queue in QUEUES)
    return {
        "name": name,
        "week": {"timezone": "UTC", "starts": "monday", "first": "2026-05-18"},
        "base_model": {"name": "tiny-bert", "source": "folder://base"},
        "source": {
            "duckdb": "../tickets.duckdb",
            "query": f"SELECT * FROM tickets WHERE queue IN ({queues})",
            "columns": {
                "id": "ticket_id",
                "text": "body",
                "label": "queue",
                "event_time": "created_at",
                "label_source": "label_source",
                "groups": ["customer_id", "thread_id"],
            },
        },
        "labels": list(QUEUES),
        "curate": {"human_sources": ["human_confirmed", "human_corrected"]},
        "split": {"validation_fraction": 0.1},
        "eval_sets": {
            role: {"name": f"fleet-{role}", "version": "v1", "file": file} | _columns(role)
            for role, file in _EVAL_FILES.items()
        },
        "train": {**_TRAIN, **_train(name)},
        "checkpoints": {"steps": 20, "keep": 1000},
        "gates": {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 0.1, "safety_max_drop": 0.1},
    }


def _train(name: str) -> dict[str, Any]:
    """Return what is special about a training; the tests that would end the first before the guard does are off."""
    merges = {BLEND: (HOT, TAINTED), SECOND_BLEND: (BLEND, _MERGED)}
    if name == HOT:
        rising = {"lr": 0.26, "scheduler": "constant", "warmup_steps": 260}
        return {**_LONG, **rising, "checks": {"grad_norm_factor": 1e9}}
    if name in merges:
        job, step = merges[name]
        return {**_LONG, "consumes": [{"use": "merge", "job": job, "step": step, "at_step": _MERGED_AT}]}
    return {}


def _columns(role: str) -> dict[str, Any]:
    return {} if role == "safety" else {"columns": {"expected": "queue"}}


def _write_rows(source: Path, target: Path) -> None:
    """Copy the rows of an eval set that one of the queues, or nobody, answers."""
    with source.open(encoding="utf-8", newline="") as read, target.open("w", encoding="utf-8", newline="") as written:
        rows = csv.reader(read)
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(next(rows))
        writer.writerows(row for row in rows if row[2] in (*QUEUES, "abstain"))


def _vocabulary(folder: Path) -> list[str]:
    """Return the commonest words of the eval sets: they are written as tickets are."""
    counted = Counter(word for text in _texts(folder) for word in text.lower().split() if word.isalpha())
    return sorted(word for word, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:_WORDS])


def _texts(folder: Path) -> Iterator[str]:
    for file in _EVAL_FILES.values():
        with (folder / file).open(encoding="utf-8", newline="") as lines:
            yield from (row["text"] for row in csv.DictReader(lines))
