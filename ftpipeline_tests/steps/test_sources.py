"""A source that cannot be read says what to do, and no message holds row text."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from ftpipeline.errors import SourceError, SourceUnavailableError
from ftpipeline.steps.sources import DuckDBSource, FileSource
from ftpipeline_tests.steps.data_steps import database

_HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


@pytest.fixture
def source(tmp_path: Path) -> DuckDBSource:
    return database(tmp_path / "it's tickets.duckdb", "SELECT 'T1' AS ticket_id, 'my secret' AS text, 7::BIGINT AS n")


def test_only_the_parameters_that_a_statement_names_are_bound(source: DuckDBSource) -> None:
    table = source.fetch("SELECT $n + n AS n FROM tickets", {"n": 1, "window_start": "unused"})
    assert table.to_pydict() == {"n": [8]}


def test_times_are_utc_whatever_the_host_says(source: DuckDBSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    table = source.fetch("SELECT '2026-10-26 00:00:00'::TIMESTAMPTZ::VARCHAR AS t", {})
    assert table.to_pydict() == {"t": ["2026-10-26 00:00:00+00"]}


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT tiket FROM tickets", "tiket"),
        ("SELECT * FROM tikets", "tikets"),
        ("SELECT n::TEXTT FROM tickets", "TEXTT"),
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM tickets WHERE n < $least", "$least"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("CREATE TABLE t AS SELECT 1", "one SELECT"),
        ("SELECT * FROM read_csv('/etc/hostname')", "disabled by configuration"),
    ],
)
def test_a_query_that_does_not_run_is_named_on_one_line(source: DuckDBSource, sql: str, named: str) -> None:
    with pytest.raises(SourceError, match="source query") as caught:
        source.fetch(sql, {})
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT text::INTEGER FROM tickets",
        "SELECT error(text) FROM tickets",
        "SELECT strptime(text, '%Y') FROM tickets",
    ],
)
def test_no_value_of_a_row_is_in_a_message(source: DuckDBSource, sql: str) -> None:
    with pytest.raises(SourceError) as caught:
        source.fetch(sql, {})
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_failed_cast_names_its_column(source: DuckDBSource) -> None:
    with pytest.raises(SourceError, match="in column text"):
        source.fetch("SELECT text::INTEGER FROM tickets", {})


def test_the_database_is_only_read(source: DuckDBSource) -> None:
    before = source.path.read_bytes()
    source.fetch("SELECT count(*) AS n FROM tickets", {})
    assert source.path.read_bytes() == before
    assert [path.name for path in source.path.parent.iterdir()] == [source.path.name]


def test_two_sources_of_one_file_do_not_lock_each_other_out(source: DuckDBSource) -> None:
    with duckdb.connect(str(source.path), read_only=True) as other:
        assert source.fetch("SELECT n FROM tickets", {}).to_pydict() == {"n": [7]}
        assert other.execute("SELECT n FROM tickets").fetchall() == [(7,)]


def test_a_missing_database_is_an_environment_problem(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"nowhere\.duckdb does not exist") as caught:
        DuckDBSource(tmp_path / "nowhere.duckdb").fetch("SELECT 1", {})
    assert caught.value.exit_code == 3


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "tickets.duckdb"
    path.write_bytes(b"ticket_id,text\n" * 1000)
    with pytest.raises(SourceUnavailableError, match="not a DuckDB file"):
        DuckDBSource(path).fetch("SELECT 1", {})


def test_a_database_locked_by_another_process_says_what_to_do(source: DuckDBSource) -> None:
    command = [sys.executable, "-c", _HOLD, str(source.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(SourceUnavailableError, match="close the writer, or copy the file") as caught:
            source.fetch("SELECT 1", {})
        writer.communicate("")
    assert "\n" not in str(caught.value)
    assert source.fetch("SELECT n FROM tickets", {}).num_rows == 1


def test_a_database_open_for_writing_in_this_process_is_locked_too(source: DuckDBSource) -> None:
    with duckdb.connect(str(source.path)), pytest.raises(SourceUnavailableError, match="close the writer"):
        source.fetch("SELECT 1", {})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"gold\.csv cannot be read \(No such file"):
        FileSource(tmp_path / "gold.csv").read()
