"""One column of a file streams out the same in every format; what cannot be read is named, never skipped."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from ftpipeline.errors import SourceError, SourceUnavailableError
from ftpipeline.steps.leakage import texts as texts_module
from ftpipeline.steps.leakage.columns import read_column, read_strings

TEXTS = ["plain", "two\nlines", 'quoted "x", comma', "", "ü 👍", "last"]


def write_csv(path: Path) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *([str(n), text] for n, text in enumerate(TEXTS))])


def write_jsonl(path: Path) -> None:
    path.write_text("\n".join(json.dumps({"id": n, "text": text}) for n, text in enumerate(TEXTS)) + "\n\n")


def write_parquet(path: Path) -> None:
    table = pa.table({"id": list(range(len(TEXTS))), "text": TEXTS})
    parquet.write_table(table, path, row_group_size=4)


@pytest.mark.parametrize("write", [write_csv, write_jsonl, write_parquet])
def test_every_format_gives_the_texts_in_file_order(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / f"rows.{write.__name__.removeprefix('write_')}"
    write(path)
    assert read_strings(path, "text") == TEXTS


def test_rows_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "CHUNK_ROWS", 4)
    write_jsonl(tmp_path / "rows.jsonl")
    write_parquet(tmp_path / "rows.parquet")
    for name in ("rows.jsonl", "rows.parquet"):
        assert [len(piece.offsets) - 1 for piece in read_column(tmp_path / name, "text")] == [4, 2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "suffix '.txt'; use one of .csv, .jsonl, .parquet"),
        ("a.csv", b"", "no such column; the file has none"),
        ("a.csv", b"id,body\n1,x\n", "no such column; the file has id, body"),
        ("a.csv", b"id,text\n1,x,y\n", "line 2 has 3 fields, the header 2"),
        ("a.csv", b'id,text\n1,"x"y\n', "line 2 is not CSV"),
        ("a.csv", b"id,text\n1,\xff\n", "is not UTF-8"),
        ("a.jsonl", b'{"text": "x"}\n{"text"\n', "line 2 is not JSON"),
        ("a.jsonl", b"[1]\n", "line 1 has no text there"),
        ("a.jsonl", b'{"text": null}\n', "line 1 has no text there"),
        ("a.jsonl", b'{"text": "\xff"}\n', "is not UTF-8"),
        ("a.parquet", b"PAR1", "no readable Parquet"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError) as raised:
        read_strings(path, "text")
    assert message in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_null_in_a_later_row_group_is_named_by_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"text": ["a", "b", "c", None]}), path, row_group_size=2)
    with pytest.raises(SourceError, match="row 3 has no text"):
        read_strings(path, "text")


def test_a_missing_file_is_the_surroundings_fault(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"a\.csv"):
        read_strings(tmp_path / "a.csv", "text")
