"""An eval set is read strictly and kept as it stands; a fault names its line."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from ftpipeline.errors import EvalSetError, SourceUnavailableError
from ftpipeline.steps.eval_set import EVAL_SET_RECORD, eval_set
from ftpipeline.steps.rows import EvalRow
from ftpipeline.steps.sources import FileSource
from ftpipeline.steps.tables import ROWS, read_rows
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.data_steps import LABELS, json_at, run_eval_set

CSV = b'id,text,queue,note\nE2,"  two\r\nlines, ""quoted"" ",login,x\n0001,NA,abstain,\n'
ROWS_OF_CSV = [EvalRow("E2", '  two\r\nlines, "quoted" ', "login"), EvalRow("0001", "NA", "abstain")]


def as_parquet(**columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def kept(out: Path) -> list[EvalRow]:
    return read_rows(out / ROWS, EvalRow)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("csv", CSV),
        ("csv", b"\xef\xbb\xbf" + CSV),
        ("csv", CSV.rstrip(b"\n")),
        (
            "jsonl",
            b'{"id": "E2", "text": "  two\\r\\nlines, \\"quoted\\" ", "queue": "login"}\n\n'
            b'{"id": "0001", "text": "NA", "queue": "abstain", "note": 1}',
        ),
        ("parquet", as_parquet(id=["E2", "0001"], text=[row.text for row in ROWS_OF_CSV], queue=["login", "abstain"])),
    ],
)
def test_every_format_gives_the_same_rows_in_file_order(tmp_path: Path, form: str, data: bytes) -> None:
    out, facts = run_eval_set(data, tmp_path, form)
    assert kept(out) == ROWS_OF_CSV
    record = {"name": "gold", "version": "v1", "rows": 2, "expected": {"login": 1, "abstain": 1}}
    assert json_at(out / EVAL_SET_RECORD) == record
    assert {name: facts[name] for name in record} == record


@pytest.mark.parametrize(
    ("form", "data", "message"),
    [
        ("csv", b'id,text,queue\nE1,"a\nb",login\nE1,c,login\n', "line 4 repeats id 'E1' of line 2"),
        ("csv", b"id,text,queue\nE1,a,login\nE2,  ,login\n", "line 3 has an empty value or a NUL in column 'text'"),
        ("csv", b"id,text,queue\n,a,login\n", "line 2 has an empty value or a NUL in column 'id'"),
        ("csv", b"id,text,queue\nE1,a\0b,login\n", "line 2"),
        ("csv", b"id,text,queue\nE1,a,Login\n", "line 2 expects 'Login', which is no label"),
        ("csv", b"id,text,queue\nE1,a;b,login,x\n", "line 2 has 4 fields, the header 3"),
        ("csv", b'id,text,queue\nE1,"a"b,login\n', "line 2 is not CSV"),
        ("csv", b'id,text,queue\nE1,a,login\nE2,"a,login\n', "line 3 is not CSV"),
        ("csv", b"id,text,text,queue\nE1,a,b,login\n", "line 1 names a column twice"),
        ("csv", b"id,body,queue\nE1,a,login\n", "line 2 has no column 'text'; it has id, body, queue"),
        ("csv", b"id,text,queue\nE1,a,login\nE2,\xff,login\n", r"line 3 is not UTF-8 \(byte 28\)"),
        ("csv", b"id,text,queue\n", "holds no row"),
        ("csv", b"", "holds no row"),
        ("jsonl", b'{"id": "E1", "text": "a", "queue": "login"}\n{"id": "E2",}\n', "line 2 is not strict JSON"),
        ("jsonl", b'{"id": "E1", "text": "a", "text": "b", "queue": "login"}\n', "line 1 is not strict JSON"),
        ("jsonl", b'{"id": "E1", "text": "a", "queue": "login", "score": NaN}\n', "line 1 is not strict JSON"),
        ("jsonl", b'{"id": "E1"}{"id": "E2"}\n', "line 1 is not strict JSON"),
        ("jsonl", b'["E1", "a", "login"]\n', "line 1 holds no JSON object"),
        ("jsonl", b'{"id": 1, "text": "a", "queue": "login"}\n', "line 1 holds no text in column 'id'"),
        (
            "parquet",
            as_parquet(id=["E1", "E2"], text=["a", None], queue=["login"] * 2),
            "line 2 holds no text in column",
        ),
        ("parquet", b"PAR1 or not", "no readable Parquet"),
        ("xlsx", b"", "format 'xlsx' is unknown; use one of csv, jsonl, parquet"),
    ],
)
def test_a_fault_names_the_eval_set_and_the_line(tmp_path: Path, form: str, data: bytes, message: str) -> None:
    with pytest.raises(EvalSetError, match=f"^eval set gold/v1: .*{message}"):
        run_eval_set(data, tmp_path, form)
    assert list((tmp_path / "eval_set").iterdir()) == []


def test_another_content_than_the_declared_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match="give it a new version"):
        run_eval_set(CSV, tmp_path, content="sha256:" + "0" * 64)


def test_a_missing_file_is_an_environment_problem(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError):
        eval_set({}, {"name": "gold", "version": "v1"}, tmp_path, file=FileSource(tmp_path / "gold.csv"))


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    data = shared("cases", "a", "tickets_bom.csv").read_bytes()
    columns = {"id": "ticket_id", "text": "text", "expected": "queue"}
    out, _ = run_eval_set(data, tmp_path, columns=columns)
    assert [row.id for row in kept(out)] == ["T1", "T2"]


def test_a_separator_inside_a_text_hides_no_row(tmp_path: Path) -> None:
    data = shared("cases", "a", "tickets_dialect_switch.csv").read_bytes()
    out, _ = run_eval_set(
        data,
        tmp_path,
        columns={"id": "text", "text": "text", "expected": "text"},
        labels=["printer is offline", "scanner jams", "error 5;code 7"],
    )
    assert [row.text for row in kept(out)] == ["printer is offline", "scanner jams", "error 5;code 7"]


def test_malformed_lines_are_refused_at_the_first_of_them(tmp_path: Path) -> None:
    data = shared("cases", "a", "tickets_malformed.jsonl").read_bytes()
    columns = {"id": "ticket_id", "text": "text", "expected": "queue"}
    with pytest.raises(EvalSetError, match="line 9 is not UTF-8"):
        run_eval_set(data, tmp_path, "jsonl", columns=columns, labels=LABELS)
    (tmp_path / "ascii").mkdir()
    with pytest.raises(EvalSetError, match="line 3 is not strict JSON"):
        run_eval_set(data.replace(b"\xff\xfe", b""), tmp_path / "ascii", "jsonl", columns=columns, labels=LABELS)
