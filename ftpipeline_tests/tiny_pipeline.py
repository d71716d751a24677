"""A whole pipeline in a folder: separable tickets, three eval sets and a tiny base model; a cycle takes seconds."""

import csv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import yaml

from ftpipeline_tests.tiny_model import LABELS, WORDS, build_tiny_bert

FIRST_WEEK = "2026-09-07"
WEEK, NEXT_WEEK = "2026-10-05", "2026-10-12"
_TOPICS = {label: WORDS[5 * index : 5 * index + 5] for index, label in enumerate(LABELS)}
_PER_WEEK = 60


def build_tiny_pipeline(folder: Path, *, name: str = "tiny", **sections: Any) -> Path:
    """Write everything a pipeline needs into `folder` and return the pipeline file.

    Args:
        folder: made if it is missing.
        name: the pipeline's name.
        sections: replace sections of the pipeline file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    build_tiny_bert(folder / "base")
    write_tickets(folder / "tickets.duckdb", weeks=6)
    _write_csv(folder / "gold.csv", ("id", "text", "queue"), _eval_rows("g", 30))
    _write_csv(folder / "regression.csv", ("id", "text", "queue"), _eval_rows("r", 30, start=1000))
    out_of_scope = [(f"s{i}", f"what is {WORDS[i % 15]} {i} a b c", "abstain") for i in range(12)]
    _write_csv(folder / "safety.csv", ("id", "text", "expected"), out_of_scope)
    return write_pipeline(folder / "pipeline.yaml", name=name, **sections)


def write_pipeline(path: Path, *, name: str = "tiny", **sections: Any) -> Path:
    """Write the pipeline file, some of its sections replaced."""
    document: dict[str, Any] = {
        "name": name,
        "week": {"timezone": "UTC", "starts": "monday", "first": FIRST_WEEK},
        "base_model": {"name": f"{name}-bert", "source": "folder://base"},
        "source": {
            "duckdb": "tickets.duckdb",
            "query": "SELECT * FROM tickets",
            "columns": {
                "id": "ticket_id",
                "text": "body",
                "label": "queue",
                "event_time": "created_at",
                "label_source": "label_source",
                "groups": ["customer_id"],
            },
        },
        "labels": list(LABELS),
        "curate": {"human_sources": ["human"], "near_duplicates": 1.0},
        "split": {"validation_fraction": 0.2},
        "eval_sets": {
            "task": {"name": f"{name}-gold", "version": "v1", "file": "gold.csv", "columns": {"expected": "queue"}},
            "regression": {
                "name": f"{name}-regression",
                "version": "v1",
                "file": "regression.csv",
                "columns": {"expected": "queue"},
            },
            "safety": {"name": f"{name}-safety", "version": "v1", "file": "safety.csv"},
        },
        "train": {
            "seed": 1,
            "lr": 0.03,
            "max_steps": 20,
            "batch_size": 8,
            "max_length": 16,
            "modules_to_save": ["classifier", "pooler"],
            "lora": {"r": 4, "lora_alpha": 8, "target_modules": ["query", "key", "value"]},
        },
        "gates": {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 0.5, "safety_max_drop": 1.0},
    }
    document.update(sections)
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def write_tickets(path: Path, *, weeks: int, extra: Iterable[Sequence[Any]] = ()) -> None:
    """Write a DuckDB file with some tickets a week from the first week on, one of ten with a machine's label."""
    start = datetime.fromisoformat(FIRST_WEEK).replace(tzinfo=UTC)
    rows: list[Sequence[Any]] = []
    for index in range(weeks * _PER_WEEK):
        when = start + timedelta(days=7 * index / _PER_WEEK)
        label, text = _sentence(index)
        source = "machine" if index % 10 == 9 else "human"
        rows.append((f"t{index:04d}", text, label, when, source, f"c{index % 40}"))
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE tickets (ticket_id VARCHAR, body VARCHAR, queue VARCHAR, created_at TIMESTAMPTZ, "
            "label_source VARCHAR, customer_id VARCHAR)"
        )
        connection.executemany("INSERT INTO tickets VALUES (?, ?, ?, ?, ?, ?)", [*rows, *extra])


def _sentence(index: int) -> tuple[str, str]:
    """A text whose words give its label away; the number keeps texts apart."""
    label = LABELS[index % len(LABELS)]
    topic = _TOPICS[label]
    words = [topic[(index * 7 + shift) % 5] for shift in (0, 2, 3)]
    return label, f"please help {' '.join(words)} number {index}"


def _eval_rows(prefix: str, count: int, start: int = 5000) -> list[Sequence[str]]:
    rows = [_sentence(start + index) for index in range(count)]
    return [(f"{prefix}{index}", text, label) for index, (label, text) in enumerate(rows)]


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
