"""Every reader gives the same verdict on the same rows, and accounts for each of them."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from ftpipeline.errors import SourceError, SourceUnavailableError
from ftpipeline.steps.postgres import PostgresSource
from ftpipeline.steps.row_files import RowFile
from ftpipeline.steps.row_formats import Dialect, Malformed
from ftpipeline.steps.rows import Reject, SnapshotRow
from ftpipeline.steps.snapshot import REJECTS, Source
from ftpipeline.steps.sources import DuckDBSource
from ftpipeline.steps.tables import ROWS, read_rows
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.data_steps import take_snapshot
from ftpipeline_tests.store.postgres_server import PostgresServer

NAMES = ("ticket_id", "customer_id", "created_at", "queue", "text")
CUSTOMER = "00000000-0000-0000-0000-00000000002a"
AT = "2026-10-06T09:00:00+00:00"
ROWS_OF_EVERY_KIND: Sequence[tuple[str | None, ...]] = (
    ("007", "0042", AT, "NA", "nan"),
    ("7", "42", AT, "None", "NULL"),
    ("9007199254740993", "9007199254740992", AT, "null", "n/a"),
    ("1e5", "100000", AT, "N/A", 'a "quoted", text\nof two lines; really'),
    ("é1", "İ", "2026-10-06 11:00:00+02:00", "billing", "Ünïcode ✓ 👍"),
    ("B1", None, AT, None, "label missing"),
    ("B2", "C", AT, "billing", None),
    (None, "C", AT, "billing", "id missing"),
    ("B3", "C", "06/10/2026 09:00", "billing", "day or month first"),
    ("B4", "C", None, "billing", "time missing"),
    ("B5", "C", "2026-10-06 09:00:00", "billing", "zone missing"),
    ("B6", "C", "2031-01-01T00:00:00Z", "billing", "years ahead"),
)


def csv_file(path: Path, rows: Sequence[Sequence[str | None]]) -> Source:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([NAMES, *(["" if cell is None else cell for cell in row] for row in rows)])
    path.write_text(text.getvalue(), "utf-8-sig")
    return RowFile(path, Dialect("csv"))


def jsonl_file(path: Path, rows: Sequence[Sequence[str | None]]) -> Source:
    lines = [json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows]
    path.write_text("".join(lines), "utf-8")
    return RowFile(path, Dialect("jsonl"))


def _table(rows: Sequence[Sequence[str | None]]) -> pa.Table:
    return pa.table({name: pa.array([row[n] for row in rows], pa.string()) for n, name in enumerate(NAMES)})


def parquet_file(path: Path, rows: Sequence[Sequence[str | None]]) -> Source:
    parquet.write_table(_table(rows), path)
    return RowFile(path, Dialect("parquet"))


def duckdb_file(path: Path, rows: Sequence[Sequence[str | None]]) -> Source:
    table = _table(rows)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE tickets AS SELECT * FROM given")
    return DuckDBSource(path)


READERS: Sequence[Callable[[Path, Any], Source]] = (csv_file, jsonl_file, parquet_file, duckdb_file)


def verdict(source: Source, out: Path) -> tuple[list[SnapshotRow], list[tuple[str, str, str]]]:
    take_snapshot(source, out)
    rejects = read_rows(out / REJECTS, Reject)
    return read_rows(out / ROWS, SnapshotRow), sorted((reject.id, reject.reason, reject.excerpt) for reject in rejects)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_a_file_of_any_format_gives_this_verdict(tmp_path: Path, reader: Callable[[Path, Any], Source]) -> None:
    accepted, rejects = verdict(reader(tmp_path / "tickets", ROWS_OF_EVERY_KIND), tmp_path / "out")
    assert [row.id for row in accepted] == ["007", "1e5", "7", "9007199254740993", "é1"]
    assert [row.label for row in accepted] == ["NA", "N/A", "None", "null", "billing"]
    assert accepted[0].groups == ("customer_id=0042",)
    assert accepted[1].text == 'a "quoted", text\nof two lines; really'
    assert [reason for _, reason, _ in rejects] == [
        "missing_id", "missing_label", "empty_text", "bad_time", "bad_time", "bad_time", "from_the_future",
    ]  # fmt: skip


@pytest.mark.postgres
def test_postgres_gives_the_verdict_of_a_file(
    tmp_path: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.empty_database() as url:
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            connection.execute(f"CREATE TABLE tickets ({', '.join(f'{name} TEXT' for name in NAMES)})")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO tickets VALUES (%s, %s, %s, %s, %s)", ROWS_OF_EVERY_KIND)
        monkeypatch.setenv("TICKETS_URL", url)
        source = PostgresSource("tickets", "TICKETS_URL")
        expected = verdict(parquet_file(tmp_path / "tickets", ROWS_OF_EVERY_KIND), tmp_path / "file")
        assert verdict(source, tmp_path / "server") == expected


@pytest.mark.postgres
def test_postgres_reads_types_in_a_read_only_transaction(
    tmp_path: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.empty_database() as url:
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            connection.execute("CREATE TABLE t (ticket_id BIGINT, customer_id UUID, created_at TIMESTAMPTZ, n DECIMAL)")
            connection.execute(
                f"INSERT INTO t VALUES (9007199254740993, '{CUSTOMER}', '2026-10-06 09:00Z', 1),"
                " (2, NULL, 'infinity', 1), (3, NULL, '2026-10-20 00:00Z', 1), (4, NULL, '0044-03-15 BC', 1)"
            )
        monkeypatch.setenv("TICKETS_URL", url)
        source = PostgresSource("tickets", "TICKETS_URL")
        query = "SELECT *, 'billing' AS queue, $said || ' it''s $said' AS text FROM t -- $nothing"
        facts = take_snapshot(source, tmp_path / "out", query, parameters={"said": "hello"})
        assert [(row.id, row.groups, row.text) for row in read_rows(tmp_path / "out" / ROWS, SnapshotRow)] == [
            ("9007199254740993", (f"customer_id={CUSTOMER}",), "hello it's $said")
        ]
        assert facts["rejects"] == {"bad_time": 1}
        assert facts["outside_window"] == 2
        with pytest.raises(SourceError, match="'n' is decimal128"):
            take_snapshot(source, tmp_path / "typed", query, parameters={"said": ""}, columns={"groups": ["n"]})
        for statement in ("DELETE FROM t", "WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone", "SELEC 1"):
            with pytest.raises(SourceError, match="source query"):
                source.fetch(statement, {})
        assert source.fetch("SELECT count(*) AS n FROM t", {}).to_pylist() == [{"n": 4}]


def test_a_connection_without_its_url_or_server_is_unavailable_and_tells_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = PostgresSource("tickets", "TICKETS_URL")
    monkeypatch.delenv("TICKETS_URL", raising=False)
    with pytest.raises(SourceUnavailableError, match="TICKETS_URL is not set"):
        source.fetch("SELECT 1", {})
    monkeypatch.setenv("TICKETS_URL", "postgresql://me:swordfish@/nowhere?host=/nonexistent")
    with pytest.raises(SourceUnavailableError, match="cannot be opened") as caught:
        source.fetch("SELECT 1", {})
    assert "swordfish" not in f"{caught.value} {caught.value.__cause__}"


BAD_LINES = (
    b'{"ticket_id": "1", "text": "fine"}\n\n{"ticket_id": "2", "text": "comma",}\n'
    b'{"ticket_id": "3", "text": "twice", "text": "x"}\n{"ticket_id": "4", "text": NaN}\n["5"]\n{"ticket_id": 6.5}\n'
    b'{"ticket_id": "7", "text": "\xff"}\n{"ticket_id": "8", "text": "\\ud800"}\n{"ticket_id": "9", "text": "cut o'
)


def test_lines_that_are_no_records_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(BAD_LINES)
    rows = RowFile(tmp_path / "t.jsonl", Dialect("jsonl")).read(["ticket_id", "text"])
    assert rows.table.to_pylist() == [{"ticket_id": "1", "text": "fine"}]
    assert [(bad.place.line, bad.place.row, bad.reason) for bad in rows.malformed] == [
        (3, 2, "malformed_json"),
        (4, 3, "duplicate_key"),
        (5, 4, "non_finite_number"),
        (6, 5, "not_an_object"),
        (7, 6, "not_text"),
        (8, 7, "bad_encoding"),
        (9, 8, "bad_encoding"),
        (10, 9, "malformed_json"),
    ]


def test_csv_records_that_do_not_fit_are_refused_and_the_next_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'a,b\n1,"two\nlines"\n2\n3,x,y\n"4"z,w\n5,\xff\n6,ok\n7,"never closed\n')
    rows = RowFile(tmp_path / "t.csv", Dialect("csv")).read(["a", "b"])
    assert rows.table["a"].to_pylist() == ["1", "6"]
    assert [(bad.place.line, bad.place.row, bad.reason) for bad in rows.malformed] == [
        (4, 2, "field_count"),
        (5, 3, "field_count"),
        (6, 4, "malformed_csv"),
        (7, 5, "bad_encoding"),
        (9, 7, "malformed_csv"),
    ]


@pytest.mark.parametrize(
    ("data", "dialect"),
    [
        (b"a;b\nx;'y;z'\n", Dialect("csv", delimiter=";", quote="'")),
        ("a,b\nx,y;z\n".encode("utf-16"), Dialect("csv", encoding="utf-16")),
        (b"a,b\r\nx,y;z\r\n", Dialect("csv")),
    ],
)
def test_the_declared_dialect_is_the_one_that_is_read(tmp_path: Path, data: bytes, dialect: Dialect) -> None:
    (tmp_path / "t").write_bytes(data)
    assert RowFile(tmp_path / "t", dialect).read(["a", "b"]).table.to_pylist() == [{"a": "x", "b": "y;z"}]


def test_a_file_without_a_declared_column_is_refused(tmp_path: Path) -> None:
    for form, data in (("csv", b"a,b\n1,2\n"), ("jsonl", b'{"a": "1"}\n')):
        (tmp_path / form).write_bytes(data)
        with pytest.raises(SourceError, match="has no column 'c'"):
            RowFile(tmp_path / form, Dialect(form)).read(["c"])
    with pytest.raises(SourceUnavailableError, match="nowhere"):
        RowFile(tmp_path / "nowhere", Dialect("csv")).read(["a"])


@given(
    lines=st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\n", b" ").replace(b"\r", b" ")), max_size=8)
)
def test_every_line_of_any_bytes_is_a_row_or_a_reject(lines: list[bytes], tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("any") / "t.jsonl"
    path.write_bytes(b"\n".join(lines))
    rows = RowFile(path, Dialect("jsonl")).read(None)
    given_lines = b"\n".join(lines).decode("utf-8-sig", "surrogateescape").split("\n")
    assert len(rows.places) + len(rows.malformed) == len([line for line in given_lines if line.strip()])
    assert all(isinstance(bad, Malformed) for bad in rows.malformed)


def test_shared_ids_and_missing_spellings_survive_every_reader(tmp_path: Path) -> None:
    for name, reasons in (("na_labels", ["missing_label"]), ("leading_zero_ids", []), ("nulls", ["nul_byte"] * 5)):
        source = RowFile(shared("cases", "a", f"tickets_{name}.csv"), Dialect("csv"))
        rows = source.read(list(NAMES))
        assert not rows.malformed
        if name != "nulls":
            _, rejects = verdict(source, tmp_path / name)
            assert [reason for _, reason, _ in rejects] == reasons
