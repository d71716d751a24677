"""An eval set is a task of lm-evaluation-harness, and its answers are measured as every report's are."""

import importlib.util
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import yaml

from ftpipeline.backends.harness import run_task, write_task
from ftpipeline.errors import EvalSetError, MissingDependencyError
from ftpipeline_tests.backends.causal.conftest import Exported
from ftpipeline_tests.backends.causal.tiny import PROMPT
from ftpipeline_tests.tiny_model import LABELS

INSTALLED = importlib.util.find_spec("lm_eval") is not None
ROWS = [("r1", "my card is late", "shipping"), ("r2", "password {reset}", "login"), ("r3", "invoice", "billing")]


def write_eval_set(folder: Path, *rows: tuple[str, str, str]) -> Path:
    folder.mkdir()
    ids, texts, expected = zip(*rows, strict=True)
    table = pyarrow.table({"id": ids, "text": texts, "expected": expected})
    pyarrow.parquet.write_table(table, folder / "rows.parquet")
    return folder


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(write_eval_set(tmp_path / "set", *ROWS), "tiny_gold", LABELS, PROMPT, tmp_path / "tasks")


def test_a_task_is_a_choice_among_the_labels_over_local_rows(task: Path) -> None:
    document = yaml.safe_load(task.read_text("utf-8"))
    assert (document["output_type"], document["doc_to_choice"]) == ("multiple_choice", list(LABELS))
    rows = [
        json.loads(line) for line in Path(document["dataset_kwargs"]["data_files"]["test"]).read_text().splitlines()
    ]
    assert [LABELS[row["gold"]] for row in rows] == [expected for _, _, expected in ROWS]
    assert rows[1]["asked"] == f"password {{reset}}\nQueue: {', '.join(LABELS)}"


def test_a_row_that_expects_an_abstention_is_refused(tmp_path: Path) -> None:
    eval_set = write_eval_set(tmp_path / "set", ("r9", "what is love", "abstain"))
    with pytest.raises(EvalSetError, match="'r9'"):
        write_task(eval_set, "tiny_gold", LABELS, PROMPT, tmp_path / "tasks")


@pytest.mark.skipif(INSTALLED, reason="lm-evaluation-harness is installed")
def test_without_the_harness_the_way_to_get_it_is_said(task: Path, exported: Exported) -> None:
    with pytest.raises(MissingDependencyError, match=r"pip install ftpipeline\[harness\]"):
        run_task(task, exported.merged, LABELS)


@pytest.mark.skipif(not INSTALLED, reason="needs lm-evaluation-harness; pip install ftpipeline[harness]")
@pytest.mark.filterwarnings("ignore")  # the harness's own libraries warn of each other
def test_the_harness_asks_every_row(task: Path, exported: Exported) -> None:
    measured = run_task(task, exported.merged, LABELS)
    assert measured["n"] == len(ROWS)
    assert 0.0 <= measured["macro_f1"] <= 1.0
    assert measured["harness"]
