"""Runs the data steps on small inputs of a test's own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from ftpipeline.digest import of_bytes
from ftpipeline.records import Facts
from ftpipeline.steps.curate import VARIANTS, curate
from ftpipeline.steps.eval_set import eval_set
from ftpipeline.steps.rows import CuratedRow, EvalRow, SnapshotRow, Variant
from ftpipeline.steps.snapshot import Source, snapshot
from ftpipeline.steps.sources import DuckDBSource, FileSource
from ftpipeline.steps.split import split
from ftpipeline.steps.tables import RECORD, ROWS, write_record, write_rows

READ = datetime(2026, 10, 20, tzinfo=UTC)
NOON = datetime(2026, 10, 7, 12, tzinfo=UTC)
LABELS = ["billing", "login"]
COLUMNS = {
    "id": "ticket_id",
    "text": "text",
    "label": "queue",
    "event_time": "created_at",
    "ingestion_time": None,
    "label_source": None,
    "groups": ["customer_id"],
}
WEEK = {"window_start": "2026-10-05T00:00:00+00:00", "window_end": "2026-10-12T00:00:00+00:00"}
SPLIT = {"validation_fraction": 0.2, "seed": 0, "leakage": {"threshold": 0.5, "policy": "drop"}}


def database(path: Path, table: str) -> DuckDBSource:
    """Write a database whose table `tickets` is what the SQL `table` returns."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET TimeZone='UTC'")
        connection.execute(f"CREATE TABLE tickets AS {table}")
    return DuckDBSource(path)


def csv_database(path: Path, file: Path, created_at: str = "created_at") -> DuckDBSource:
    """Load a CSV file as text, every spelling as it stands; only an empty field is missing."""
    read = f"read_csv('{file}', all_varchar=true, header=true, delim=',', quote='\"', nullstr='', auto_detect=false"
    with file.open(encoding="utf-8-sig") as lines:
        names = lines.readline().strip().split(",")
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    return database(path, f"SELECT * REPLACE ({created_at} AS created_at) FROM {read}, columns={{{columns}}})")


def take_snapshot(source: Source, out: Path, query: str = "SELECT * FROM tickets", **changes: Any) -> Facts:
    """Run the snapshot step; `changes` replace parameters, and `columns` single columns."""
    columns = COLUMNS | changes.pop("columns", {})
    params = {
        "query": query,
        "parameters": {},
        "timezone": None,
        "max_reject_rate": 1.0,
        **WEEK,
        **changes,
        "columns": columns,
    }
    out.mkdir()
    return snapshot({}, params, out, source=source, clock=lambda: READ)


def snapshot_row(
    ident: str, text: str, label: str = "billing", groups: Iterable[str] = (), **values: Any
) -> SnapshotRow:
    return SnapshotRow(ident, text, label, values.get("source"), values.get("event_time", NOON), tuple(groups))


def curated_row(ident: str, text: str, label: str = "billing", groups: Iterable[str] = ()) -> CuratedRow:
    return CuratedRow(ident, text, label, NOON, tuple(groups), (ident,))


def run_curate(rows: Sequence[SnapshotRow], folder: Path, **changes: Any) -> tuple[Path, Facts]:
    """Run the curate step on rows as a snapshot holds them."""
    taken, out = folder / "snapshot", folder / "curated"
    for path in (taken, out):
        path.mkdir(parents=True)
    write_rows(taken / ROWS, sorted(rows, key=lambda row: row.id), SnapshotRow)
    write_record(taken / RECORD, {"query": "SELECT 1"})
    params = {"labels": LABELS, "human_sources": None, "near_duplicates": 0.8, **changes}
    return out, curate({"snapshot": taken}, params, out)


def run_split(
    rows: Sequence[CuratedRow],
    folder: Path,
    evals: Mapping[str, Sequence[str]] | None = None,
    variants: Sequence[Variant] = (),
    **changes: Any,
) -> tuple[Path, Facts]:
    """Run the split step on curated rows; `evals` maps a role to its texts."""
    curated, out = folder / "curated", folder / "split"
    inputs = {"curated": curated}
    for path in (curated, out):
        path.mkdir(parents=True)
    write_rows(curated / ROWS, rows, CuratedRow)
    write_rows(curated / VARIANTS, variants, Variant)
    for role, texts in (evals or {}).items():
        inputs[f"eval_{role}"] = folder / role
        inputs[f"eval_{role}"].mkdir()
        questions = [EvalRow(f"{role}-{index}", text, "billing") for index, text in enumerate(texts)]
        write_rows(inputs[f"eval_{role}"] / ROWS, questions, EvalRow)
    return out, split(inputs, SPLIT | changes, out)


def run_eval_set(data: bytes, folder: Path, form: str = "csv", **changes: Any) -> tuple[Path, Facts]:
    """Run the eval_set step on a file with this content."""
    file, out = folder / f"set.{form}", folder / "eval_set"
    out.mkdir()
    file.write_bytes(data)
    params = {
        "name": "gold",
        "version": "v1",
        "format": form,
        "columns": {"id": "id", "text": "text", "expected": "queue"},
        "content": of_bytes(data),
        "labels": LABELS,
    }
    return out, eval_set({}, params | changes, out, file=FileSource(file))


def json_at(path: Path) -> Any:
    return json.loads(path.read_bytes())


def content(folder: Path) -> dict[str, bytes]:
    """Return every file of an output tree."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
