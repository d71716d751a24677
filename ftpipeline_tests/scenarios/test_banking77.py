"""Real questions of real customers, end to end: the model learns, every leak is found, lineage ends at the query."""

import io
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest
import yaml

from ftpipeline.store.opened import Store
from ftpipeline_tests.cli.command import ftpipeline, open_home
from ftpipeline_tests.shared import shared

PIPELINE = Path(__file__).with_name("banking77.yaml")
WEEK = "2026-W45"
_FILES = ("banking77_gold_v1.csv", "banking77_regression_v1.csv", "safety_oos_v1.csv", "banking77_queues.json")
_STEPS = 45  # of the 135 that the file has: enough to tell learning from chance, which is 1/77

_NORMALISED = r"trim(regexp_replace(lower({}), '\W+', ' ', 'g'))"
_GIVEN_AWAY = f"""
    SELECT ticket_id FROM tickets
    WHERE created_at >= TIMESTAMPTZ '2026-08-11 00:00:00+00' AND created_at < TIMESTAMPTZ '2026-11-09 00:00:00+00'
    AND label_source IN ('human_confirmed', 'human_corrected')
    AND {_NORMALISED.format("text")} IN (SELECT {_NORMALISED.format("text")} FROM read_csv(?, all_varchar = true))
"""


@dataclass(frozen=True)
class Week:
    """A week that was run.

    Attributes:
        folder: holds the pipeline file and everything that it names.
        home: the home that it was run in.
        document: what the run printed.
    """

    folder: Path
    home: Path
    document: Mapping[str, Any]

    @property
    def outputs(self) -> dict[str, Any]:
        """Digest by step."""
        return {step["name"]: step["digest"] for step in self.document["steps"]}


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Week:
    folder = tmp_path_factory.mktemp("banking77")
    for name in _FILES:
        shutil.copyfile(shared("data", name), folder / name)
    _load(shared("data", "banking77_tickets.csv"), folder / "tickets.duckdb")
    document = yaml.safe_load(PIPELINE.read_text("utf-8"))
    document["train"]["max_steps"] = _STEPS
    (folder / PIPELINE.name).write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    done = ftpipeline("run", folder / PIPELINE.name, "--week", WEEK, "--home", folder / "home", "--json")
    assert done.code == 0, done.stderr
    return Week(folder, folder / "home", done.document)


def _load(tickets: Path, database: Path) -> None:
    with duckdb.connect(str(database)) as connection:
        connection.execute(
            "CREATE TABLE tickets AS SELECT * REPLACE (created_at::TIMESTAMPTZ AS created_at) "
            "FROM read_csv(?, all_varchar = true)",
            [str(tickets)],
        )


@pytest.fixture
def store(week: Week) -> Iterator[Store]:
    with open_home(week.home) as store:
        yield store


def rows(store: Store, tree: Any, file: str) -> list[dict[str, Any]]:
    """The rows of a parquet file in a tree."""
    return list(pyarrow.parquet.read_table(io.BytesIO(store.trees.read(tree, file))).to_pylist())


@pytest.mark.slow
def test_the_served_model_learns_from_real_tickets(week: Week) -> None:
    assert week.document["verdict"] == "first_release"
    assert week.document["metrics"]["task"]["macro_f1"] > 0.2
    assert week.document["metrics"]["regression"]["macro_f1"] > 0.2


@pytest.mark.slow
def test_every_ticket_that_repeats_a_gold_text_is_found_and_dropped(week: Week, store: Store) -> None:
    with duckdb.connect(str(week.folder / "tickets.duckdb"), read_only=True) as connection:
        found = connection.execute(_GIVEN_AWAY, [str(week.folder / "banking77_gold_v1.csv")]).fetchall()
    given_away = {ticket for (ticket,) in found}
    leaks = rows(store, week.outputs["split"], "leaks.parquet")
    leaked = {member for leak in leaks if leak["eval_set"] == "task" for member in leak["members"]}
    kept = rows(store, week.outputs["split"], "train.parquet") + rows(
        store, week.outputs["split"], "validation.parquet"
    )
    assert given_away
    assert given_away <= leaked
    assert leaked.isdisjoint(member for row in kept for member in row["members"])
    assert week.document["leaked"] == len({leak["train_id"] for leak in leaks if leak["split"] == "train"})


@pytest.mark.slow
def test_lineage_of_the_served_file_ends_at_the_source_query(week: Week) -> None:
    walked = ftpipeline("lineage", week.document["artifact"], "--home", week.home, "--json").document
    declared = yaml.safe_load(PIPELINE.read_text("utf-8"))["source"]["query"]
    window = {"start": "2026-08-11T00:00:00+00:00", "end": "2026-11-09T00:00:00+00:00", "timezone": None}
    assert walked["nodes"][0]["step"] == "export"
    assert walked["source"]["query"] == declared
    assert walked["source"]["window"] == window
    assert {node["step"] for node in walked["nodes"] if not node["inputs"]} <= {"snapshot", "base_model", "eval_set"}
