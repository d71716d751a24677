from pathlib import Path

import pyarrow
import pyarrow.parquet

from ftpipeline.backends.dataset import labelled_rows
from ftpipeline_tests.tiny_model import LABELS


def test_an_eval_set_becomes_rows_of_a_split_without_those_that_expect_an_abstention(tmp_path: Path) -> None:
    expected = [LABELS[0], "abstain", LABELS[1]]
    table = pyarrow.table({"id": ["a", "b", "c"], "text": ["one", "two", "three"], "expected": expected})
    (tmp_path / "eval").mkdir()
    pyarrow.parquet.write_table(table, tmp_path / "eval" / "rows.parquet")
    rows = pyarrow.parquet.read_table(labelled_rows(tmp_path / "eval", tmp_path)).to_pylist()
    assert rows == [{"text": "one", "label": LABELS[0]}, {"text": "three", "label": LABELS[1]}]
