"""From the source to the split: what the order of rows and the passing of weeks may change, and what not."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftpipeline.errors import EmptyResultError, SourceError
from ftpipeline.steps.curate import curate
from ftpipeline.steps.row_files import RowFile
from ftpipeline.steps.row_formats import Dialect
from ftpipeline.steps.rows import CuratedRow, Reject, SnapshotRow
from ftpipeline.steps.snapshot import REJECTS, Source
from ftpipeline.steps.sources import DuckDBSource
from ftpipeline.steps.split import split
from ftpipeline.steps.tables import ROWS, read_rows
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.data_steps import LABELS, SPLIT, content, run_split, take_snapshot

Ticket = tuple[str, str, str | None, str | None]  # id, text, customer, thread

HEADER = "ticket_id,text,customer_id,thread_id,created_at,ingested_at,queue\n"
W40 = {"window_start": "2026-07-07T00:00:00+00:00", "window_end": "2026-10-05T00:00:00+00:00"}
W41 = {"window_start": "2026-07-14T00:00:00+00:00", "window_end": "2026-10-12T00:00:00+00:00"}
LATE: dict[str, Any] = {"columns": {"ingestion_time": "ingested_at"}}

word = st.sampled_from(["pay", "card", "lost", "login", "code", "again", "a@b.example"])
texts = st.lists(word, min_size=1, max_size=8).map(" ".join)
keys = st.one_of(st.none(), st.sampled_from("abcdef"))
tickets = st.lists(st.tuples(texts, keys, keys), min_size=3, max_size=14).map(
    lambda rows: [(f"T{n:02}", *row) for n, row in enumerate(rows)]
)


def duckdb_of(path: Path, rows: Sequence[Ticket]) -> Source:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE tickets (ticket_id TEXT, text TEXT, customer_id TEXT, thread_id TEXT)")
        connection.executemany("INSERT INTO tickets VALUES (?, ?, ?, ?)", rows)
    return DuckDBSource(path)


QUERY = "SELECT *, '2026-10-06T09:00:00Z' AS created_at, 'billing' AS queue FROM tickets"


def outputs(source: Source, folder: Path) -> list[dict[str, bytes]]:
    """Run snapshot, curate and split; return the files of each."""
    taken, curated, out = (folder / name for name in ("snapshot", "curated", "split"))
    take_snapshot(source, taken, QUERY, columns={"groups": ["customer_id", "thread_id"]})
    curated.mkdir()
    curate({"snapshot": taken}, {"labels": LABELS, "human_sources": None, "near_duplicates": 0.6}, curated)
    out.mkdir()
    split({"curated": curated}, SPLIT | {"leakage": {"threshold": 1.0, "policy": "drop"}}, out)
    return [content(path) for path in (taken, curated, out)]


@settings(max_examples=25)
@given(rows=tickets, random=st.randoms(use_true_random=False))
def test_the_order_of_the_sources_rows_changes_no_digest_downstream(
    rows: list[Ticket], random: Any, tmp_path_factory: Any
) -> None:
    extra: list[Ticket] = [(f"X{n}", f"unlike number {n} of all {n}", f"x{n}", None) for n in range(20)]
    folders = [tmp_path_factory.mktemp(name) for name in ("given", "shuffled")]
    given_rows = [*rows, *extra, *rows[:2]]
    orders = (given_rows, random.sample(given_rows, len(given_rows)))
    results = [
        outputs(duckdb_of(folder / "t.duckdb", order), folder) for folder, order in zip(folders, orders, strict=True)
    ]
    assert results[0] == results[1]


def _file(path: Path, rows: Sequence[str]) -> RowFile:
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows), "utf-8")
    return RowFile(path, Dialect("csv"))


def test_the_order_of_a_files_lines_changes_the_places_of_rejects_alone(tmp_path: Path) -> None:
    rows = [f"T{n},text {n},c{n},,2026-10-06T09:00:00Z,,{'billing' if n % 4 else ''}" for n in range(9)]
    folders = []
    for name, order in (("a", rows), ("b", rows[::-1])):
        take_snapshot(_file(tmp_path / f"{name}.csv", order), tmp_path / name)
        folders.append(content(tmp_path / name))
    assert folders[0].pop(REJECTS) != folders[1].pop(REJECTS)
    assert folders[0] == folders[1]


def accepted(folder: Path) -> list[str]:
    return [row.id for row in read_rows(folder / ROWS, SnapshotRow)]


def reasons(folder: Path) -> dict[str, str]:
    return {reject.id: reject.reason for reject in read_rows(folder / REJECTS, Reject)}


def test_late_rows_are_in_the_next_snapshot_once_and_rows_of_the_future_in_none(tmp_path: Path) -> None:
    rows = [
        "T1,on time,c,,2026-10-01T10:00:00Z,2026-10-01T10:01:00Z,billing",
        "T2,late,c,,2026-10-04T23:50:00Z,2026-10-05T02:10:00Z,billing",
        "T3,at the cut,c,,2026-10-04T22:00:00Z,2026-10-05T00:00:00Z,billing",
        "T4,a clock ahead,c,,2031-01-01T00:00:00Z,2026-10-02T08:00:00Z,billing",
        "T5,a little ahead,c,,2026-10-05T08:00:00Z,2026-10-04T23:00:00Z,billing",
    ]
    source = _file(tmp_path / "t.csv", rows)
    for name, window in (("w40", W40), ("w41", W41)):
        take_snapshot(source, tmp_path / name, **LATE, **window)
    assert accepted(tmp_path / "w40") == ["T1"]
    assert accepted(tmp_path / "w41") == ["T1", "T2", "T3", "T5"]
    assert reasons(tmp_path / "w40") == reasons(tmp_path / "w41") == {"T4": "from_the_future"}


def test_the_shared_late_rows(tmp_path: Path) -> None:
    source = RowFile(shared("cases", "a", "week_late_arrivals.csv"), Dialect("csv"))
    for name, window in (("w40", W40), ("w41", W41)):
        take_snapshot(source, tmp_path / name, **LATE, **window)
    assert accepted(tmp_path / "w40") == ["T1"]
    assert accepted(tmp_path / "w41") == ["T1", "T2", "T3", "T4", "T6"]
    assert reasons(tmp_path / "w41") == {"T5": "from_the_future"}


@pytest.mark.parametrize("kind", ["TIMESTAMPTZ", "VARCHAR"])
def test_a_database_rejects_rows_of_the_future_like_a_file(tmp_path: Path, kind: str) -> None:
    times = ("2026-10-06T00:00:00Z", "2026-10-14T00:00:00Z", "2031-01-01T00:00:00Z")
    selects = (
        f"SELECT 'T{n}' AS ticket_id, 'c' AS customer_id, '{at}'::{kind} AS created_at, 'q' AS queue, 'x{n}' AS text"
        for n, at in enumerate(times)
    )
    facts = take_snapshot(_select(tmp_path, " UNION ALL ".join(selects)), tmp_path / "out")
    assert facts["rejects"] == {"from_the_future": 1}
    assert facts["outside_window"] == 1


def _select(folder: Path, sql: str) -> DuckDBSource:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"SET TimeZone='UTC'; CREATE TABLE tickets AS {sql}")
    return DuckDBSource(folder / "t.duckdb")


def test_more_rejects_than_declared_fail_the_step(tmp_path: Path) -> None:
    rows = [f"T{n},text,c,,2026-10-06T09:00:00Z,,{'billing' if n else ''}" for n in range(10)]
    source = _file(tmp_path / "t.csv", rows)
    assert take_snapshot(source, tmp_path / "at", max_reject_rate=0.1)["rejected"] == 1
    with pytest.raises(SourceError, match=r"1 of 10 rows are rejected \(1 missing_label\), more than max_reject_rate"):
        take_snapshot(source, tmp_path / "above", max_reject_rate=0.09)
    assert content(tmp_path / "above") == {}


def test_declared_values_stand_for_no_key(tmp_path: Path) -> None:
    rows = [f"T{n},text {n},{key},,2026-10-06T09:00:00Z,,q" for n, key in enumerate(["null", "unknown", " ", "c1"])]
    source = _file(tmp_path / "t.csv", rows)
    take_snapshot(source, tmp_path / "out", columns={"missing_keys": ["null", "unknown"]})
    assert [row.groups for row in read_rows(tmp_path / "out" / ROWS, SnapshotRow)] == [(), (), (), ("customer_id=c1",)]


def sides(rows: Sequence[CuratedRow], folder: Path) -> dict[str, str]:
    leakage = {"threshold": 1.0, "policy": "drop"}
    out, _ = run_split(rows, folder, leakage=leakage)
    return {row.id: side for side in ("train", "validation") for row in read_rows(out / f"{side}.parquet", CuratedRow)}


def _ticket(week: int, n: int, customers: Sequence[int]) -> CuratedRow:
    moment = datetime(2026, 7, 6, tzinfo=UTC) + timedelta(days=7 * week, minutes=n)
    text = " ".join(f"w{week}n{n}i{i}" for i in range(4))
    return CuratedRow(f"T{week:02}-{n:03}", text, "billing", moment, tuple(f"c={c}" for c in sorted(customers)), ("T",))


def test_rows_without_a_key_are_strangers_unless_their_texts_resemble_each_other(tmp_path: Path) -> None:
    text = "please resend the october invoice for my account as pdf today"
    rows = [_ticket(0, n, [n]) for n in range(30)]
    for n in range(20):
        at = datetime(2026, 7, 6, tzinfo=UTC)
        rows += [
            CuratedRow(f"N{n}a", f"{text} thanks number{n} " + f"x{n} " * 3, "billing", at, (), ("N",)),
            CuratedRow(f"N{n}b", f"{text} thank you number{n} " + f"x{n} " * 3, "billing", at, (), ("N",)),
        ]
    found = sides(rows, tmp_path)
    assert all(found.get(f"N{n}a") == found.get(f"N{n}b") for n in range(20))


def test_a_missing_class_is_reported_or_fails_by_policy(tmp_path: Path) -> None:
    rows = [_ticket(0, n, [n]) for n in range(30)]
    rows.append(CuratedRow("L", "one login ticket", "login", rows[0].event_time, ("c=999",), ("L",)))
    _, facts = run_split(rows, tmp_path / "report")
    assert sorted(map(tuple, facts["missing_labels"].values())) == [(), ("login",)]
    with pytest.raises(EmptyResultError, match="has no row of login; widen the window"):
        run_split(rows, tmp_path / "fail", missing_classes="fail")


def _shared_sides(folder: Path, name: str, **columns: Any) -> tuple[dict[str, str], int]:
    """Run a shared file through snapshot, curate and split; return each member's side and the rows read."""
    taken, curated = folder / "snapshot", folder / "curated"
    source = RowFile(shared("cases", "a", name), Dialect("csv"))
    facts = take_snapshot(source, taken, columns=columns)
    curated.mkdir()
    curate({"snapshot": taken}, {"labels": LABELS, "human_sources": None, "near_duplicates": 0.8}, curated)
    (folder / "split").mkdir()
    params = SPLIT | {"leakage": {"threshold": 1.0, "policy": "drop"}}
    split({"curated": curated}, params, folder / "split")
    found = {
        member: side
        for side in ("train", "validation")
        for row in read_rows(folder / "split" / f"{side}.parquet", CuratedRow)
        for member in row.members
    }
    return found, facts["read"]


def test_the_shared_missing_keys_lose_no_row_and_split_no_ticket(tmp_path: Path) -> None:
    for name, columns in (("plain", {}), ("declared", {"missing_keys": ["null", "unknown"]})):
        (tmp_path / name).mkdir()
        found, read = _shared_sides(tmp_path / name, "tickets_null_group.csv", **columns)
        assert len(found) == read == 7
        assert found["T1"] == found["T3"]
        assert found["T6"] == found["T7"]


def test_the_shared_big_group_is_trained_on_as_a_whole(tmp_path: Path) -> None:
    found, _ = _shared_sides(tmp_path, "tickets_one_big_group.csv")
    assert {found[f"T{n}"] for n in range(1, 15)} == {"train"}
    assert "validation" in found.values()
