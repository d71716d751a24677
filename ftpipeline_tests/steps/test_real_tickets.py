"""Real text through snapshot, curate and split: what an independent query calls a copy of a gold text is gone."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ftpipeline.digest import of_file
from ftpipeline.records import Facts, Step
from ftpipeline.steps.curate import curate
from ftpipeline.steps.eval_set import eval_set
from ftpipeline.steps.snapshot import snapshot
from ftpipeline.steps.sources import FileSource
from ftpipeline.steps.split import LEAKS, split
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.data_steps import SPLIT, csv_database

HUMAN = ["human_confirmed", "human_corrected"]
WINDOW = {"window_start": "2026-08-11T00:00:00+00:00", "window_end": "2026-11-09T00:00:00+00:00"}
SETS = {
    "task": ("banking77_gold_v1.csv", "queue"),
    "regression": ("banking77_regression_v1.csv", "queue"),
    "safety": ("safety_oos_v1.csv", "expected"),
}
COLUMNS = {
    "id": "ticket_id",
    "text": "text",
    "label": "queue",
    "event_time": "created_at",
    "ingestion_time": None,
    "label_source": "label_source",
    "groups": ["customer_id", "thread_id"],
}
COPIES = r"""
    WITH gold AS (SELECT DISTINCT normal(text) AS text FROM read_csv('{gold}', all_varchar=true, header=true))
    SELECT ticket_id FROM export.tickets
    WHERE normal(text) IN (FROM gold) AND label_source != 'auto_accepted'
      AND created_at >= TIMESTAMPTZ '{window_start}' AND created_at < TIMESTAMPTZ '{window_end}'
"""
NORMAL = r"CREATE MACRO normal(t) AS trim(regexp_replace(lower(t), '[^a-z0-9_]+', ' ', 'g'))"


class Outcome:
    """The output trees and facts of the data steps, run once for all tests of this file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, Facts] = {}

    def run(self, name: str, step: Step, inputs: dict[str, str], params: dict[str, Any], **ports: Any) -> None:
        out = self.folder / name
        out.mkdir()
        trees = {port: self.folder / tree for port, tree in inputs.items()}
        self.facts[name] = step(trees, params, out, **ports)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("tickets")
    source = csv_database(folder / "tickets.duckdb", shared("data", "banking77_tickets.csv"), "created_at::TIMESTAMPTZ")
    labels = json.loads(shared("data", "banking77_queues.json").read_bytes())
    outcome = Outcome(folder)
    query = {
        "query": "FROM tickets",
        "parameters": {},
        "columns": COLUMNS,
        "timezone": None,
        "max_reject_rate": 0.0,
        **WINDOW,
    }
    outcome.run("snapshot", snapshot, {}, query, source=source)
    outcome.run(
        "curated", curate, {"snapshot": "snapshot"}, {"labels": labels, "human_sources": HUMAN, "near_duplicates": 0.8}
    )
    for role, (name, expected) in SETS.items():
        file = shared("data", name)
        columns = {"id": "id", "text": "text", "expected": expected}
        declared = {"name": role, "version": "v1", "format": "csv", "columns": columns, "labels": labels}
        outcome.run(f"eval_{role}", eval_set, {}, {**declared, "content": of_file(file)}, file=FileSource(file))
    outcome.run("split", split, {"curated": "curated", **{f"eval_{role}": f"eval_{role}" for role in SETS}}, SPLIT)
    return outcome


def tickets(path: Path, where: str = "true") -> set[str]:
    """Return the ids of all source rows behind the rows of a file."""
    return {row[0] for row in duckdb.execute(f"SELECT unnest(members) FROM '{path}' WHERE {where}").fetchall()}


def test_every_copy_of_a_gold_text_is_among_the_leaks_and_none_is_left(outcome: Outcome) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{outcome.folder / 'tickets.duckdb'}' AS export (READ_ONLY)")
        connection.execute(NORMAL)
        found = connection.execute(COPIES.format(gold=shared("data", SETS["task"][0]), **WINDOW)).fetchall()
    copies = {row[0] for row in found}
    out = outcome.folder / "split"
    assert len(copies) >= 10
    assert copies <= tickets(out / LEAKS, "eval_set = 'task'")
    assert not copies & (tickets(out / "train.parquet") | tickets(out / "validation.parquet"))


def test_every_ticket_is_accounted_for(outcome: Outcome) -> None:
    facts = outcome.facts
    assert facts["snapshot"]["accepted"] + facts["snapshot"]["outside_window"] == 10_666
    out = outcome.folder / "split"
    kept, leaked = tickets(out / "train.parquet") | tickets(out / "validation.parquet"), tickets(out / LEAKS)
    assert not kept & leaked
    assert kept | leaked == tickets(outcome.folder / "curated" / "rows.parquet")


def test_no_personal_data_of_the_export_is_left(outcome: Outcome) -> None:
    rows = duckdb.execute(f"SELECT text FROM '{outcome.folder}/curated/rows.parquet'").fetchall()
    left = [text for (text,) in rows if "@example.com" in text or "555-01" in text or "4111" in text]
    assert left == []
    assert outcome.facts["curated"]["cleaning"]["[EMAIL]"] > 50


def test_all_labels_stand_on_both_sides_and_the_wanted_share_is_reached(outcome: Outcome) -> None:
    facts = outcome.facts["split"]
    assert facts["missing_labels"]["train"] == []
    assert facts["validation_fraction"]["reached"] == pytest.approx(SPLIT["validation_fraction"], abs=0.02)
