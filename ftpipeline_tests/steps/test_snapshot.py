"""The snapshot accounts for every row and depends on nothing but the rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.errors import EmptyWindowError, SourceError
from ftpipeline.steps.rows import Reject, SnapshotRow
from ftpipeline.steps.snapshot import REJECTS
from ftpipeline.steps.tables import RECORD, ROWS, read_rows, write_rows
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.data_steps import COLUMNS, content, csv_database, database, json_at, take_snapshot


def values(*rows: str) -> str:
    """Return SQL for tickets with these values, times as TIMESTAMPTZ."""
    names = "ticket_id, customer_id, created_at, queue, text"
    return f"SELECT * REPLACE (created_at::TIMESTAMPTZ AS created_at) FROM (VALUES {', '.join(rows)}) AS t({names})"


def ticket(ident: str = "T1", customer: str = "C1", at: str = "2026-10-05T09:00:00Z", text: str = "hello") -> str:
    return f"('{ident}', '{customer}', '{at}', 'billing', '{text}')"


def accepted(out: Path) -> list[SnapshotRow]:
    return read_rows(out / ROWS, SnapshotRow)


def reasons(out: Path) -> dict[str, str]:
    return {reject.id: reject.reason for reject in read_rows(out / REJECTS, Reject)}


def test_the_record_says_how_to_ask_for_the_rows_again(tmp_path: Path) -> None:
    source = database(tmp_path / "t.duckdb", values(ticket("T1"), ticket("T2", at="2026-10-12T00:00:00Z")))
    query = "SELECT * FROM tickets WHERE queue = $queue; "
    facts = take_snapshot(source, tmp_path / "out", query, parameters={"queue": "billing"})
    record = json_at(tmp_path / "out" / RECORD)
    assert record["query"] == query
    assert record["parameters"] == {"queue": "billing"}
    assert record["window"] == {
        "start": "2026-10-05T00:00:00+00:00",
        "end": "2026-10-12T00:00:00+00:00",
        "timezone": None,
    }
    assert record["columns"] == {**COLUMNS, "missing_keys": []}
    assert record["counts"] == {"read": 1, "accepted": 1, "rejected": 0, "outside_window": 1}
    assert facts["query_sha256"] == record["query_sha256"]
    assert facts["labels"] == {"billing": 1}


def test_the_order_of_the_source_changes_no_byte(tmp_path: Path) -> None:
    rows = [ticket(f"T{n}", text=f"text {n}") for n in range(30)] + [
        ticket("T3", text="other"),
        ticket("T4", text="text 4"),
    ]
    trees = []
    for name, order in (("a", rows), ("b", rows[::-1])):
        take_snapshot(database(tmp_path / f"{name}.duckdb", values(*order)), tmp_path / name)
        trees.append(content(tmp_path / name))
    assert trees[0] == trees[1]


def test_a_query_may_name_the_window_and_end_in_a_comment(tmp_path: Path) -> None:
    source = database(tmp_path / "t.duckdb", values(ticket("T1"), ticket("T2", at="2026-10-01T00:00:00Z")))
    within = "created_at >= $window_start AND created_at < $cut"
    query = f"WITH source AS (FROM tickets) SELECT * FROM source WHERE {within} -- the last line may be a comment"
    assert take_snapshot(source, tmp_path / "out", query)["outside_window"] == 0


def test_rows_ingested_at_the_cut_or_later_wait_for_the_next_snapshot(tmp_path: Path) -> None:
    rows = values(ticket("T1"), ticket("T2"), ticket("T3"), ticket("T4"))
    known = "(VALUES ('T1', '2026-10-11 23:59:59Z'), ('T2', '2026-10-12 00:00:00Z'), ('T3', '2026-10-13 00:00:00Z'))"
    joined = f"({rows}) LEFT JOIN {known} AS k(ticket_id, known) USING (ticket_id)"
    source = database(tmp_path / "t.duckdb", f"SELECT * REPLACE (known::TIMESTAMPTZ AS known) FROM {joined}")
    facts = take_snapshot(source, tmp_path / "out", columns={"ingestion_time": "known"})
    assert [row.id for row in accepted(tmp_path / "out")] == ["T1"]
    assert facts["outside_window"] == 2
    assert reasons(tmp_path / "out") == {"T4": "bad_ingestion_time"}


@pytest.mark.parametrize("kind", ["TIMESTAMPTZ", "VARCHAR"])
def test_the_window_is_the_same_for_timestamps_and_text(tmp_path: Path, kind: str) -> None:
    times = (
        "2026-10-04T23:59:59.999999Z",
        "2026-10-05T00:00:00Z",
        "2026-10-11T23:59:59.999999Z",
        "2026-10-12T00:00:00Z",
    )
    rows = [ticket(f"T{index}", at=at) for index, at in enumerate(times)]
    as_text = "strftime(created_at, '%Y-%m-%dT%H:%M:%S.%fZ')" if kind == "VARCHAR" else "created_at"
    source = database(tmp_path / "t.duckdb", f"SELECT * REPLACE ({as_text} AS created_at) FROM ({values(*rows)})")
    facts = take_snapshot(source, tmp_path / "out")
    assert [row.id for row in accepted(tmp_path / "out")] == ["T1", "T2"]
    assert facts["outside_window"] == 2


def test_timestamps_without_zone_need_the_declared_one(tmp_path: Path) -> None:
    rows = values(ticket("T1", at="2026-10-05T01:00:00Z"), ticket("T2", at="2026-10-05T03:00:00Z"))
    source = database(tmp_path / "t.duckdb", f"SELECT * REPLACE (created_at::TIMESTAMP AS created_at) FROM ({rows})")
    with pytest.raises(EmptyWindowError, match="2 bad_time"):
        take_snapshot(source, tmp_path / "refused")
    take_snapshot(source, tmp_path / "berlin", timezone="Europe/Berlin")
    assert [row.id for row in accepted(tmp_path / "berlin")] == ["T2"]


def test_one_id_with_two_contents_is_rejected_whole_and_a_repeated_row_counted_once(tmp_path: Path) -> None:
    rows = [ticket("T1", text="one"), ticket("T1", text="two"), ticket("T2"), ticket("T2"), ticket("T2")]
    facts = take_snapshot(database(tmp_path / "t.duckdb", values(*rows)), tmp_path / "out")
    assert [row.id for row in accepted(tmp_path / "out")] == ["T2"]
    assert facts["rejects"] == {"duplicate_id": 2, "duplicate_row": 2}


def test_rejects_show_the_start_of_a_text_without_personal_data(tmp_path: Path) -> None:
    texts = ["call +44 20 7946 0018 " + "and so on " * 20, "write to a@b.example"]
    rows = [ticket("T1"), *(ticket("T2", text=text) for text in texts)]
    take_snapshot(database(tmp_path / "t.duckdb", values(*rows)), tmp_path / "out")
    refused = read_rows(tmp_path / "out" / REJECTS, Reject)
    assert [(reject.text_length, reject.line, reject.row) for reject in refused] == [
        (20, None, None),
        (222, None, None),
    ]
    assert refused[0].excerpt == "write to [EMAIL]"
    assert refused[1].excerpt == ("call [PHONE] " + "and so on " * 20)[:80]
    assert refused[0].groups == ("customer_id=C1",)


def test_facts_hold_no_excerpt(tmp_path: Path) -> None:
    rows = [ticket("T1"), ticket("T2", text="a secret"), ticket("T2", text="another secret")]
    facts = take_snapshot(database(tmp_path / "t.duckdb", values(*rows)), tmp_path / "out")
    assert "secret" not in str(facts)
    assert b"secret" not in (tmp_path / "out" / RECORD).read_bytes()


def test_an_empty_window_is_named(tmp_path: Path) -> None:
    source = database(tmp_path / "t.duckdb", values(ticket(at="2026-09-01T00:00:00Z")))
    with pytest.raises(EmptyWindowError, match=r"\[2026-10-05T00:00:00\+00:00, 2026-10-12T00:00:00\+00:00\)"):
        take_snapshot(source, tmp_path / "out")
    assert content(tmp_path / "out") == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": {"text": "body"}}, "no column 'body'; it returns ticket_id, customer_id, created_at, queue, text"),
        ({"columns": {"groups": ["thread_id"]}}, "no column 'thread_id'"),
        ({"columns": {"event_time": "n"}, "query": "SELECT *, 1 AS n FROM tickets"}, "'n' is int32; a time is"),
        ({"columns": {"id": "n"}, "query": "SELECT *, 1.5 AS n FROM tickets"}, "'n' is decimal128.*make it text"),
        ({"parameters": {"since": 1}}, r"does not name \$since"),
        ({"parameters": {"cut": 1}}, "'cut' is bound by the window"),
        ({"query": "SELECT * FROM tickets WHERE text = $text"}, r"\$text, which has no value"),
        ({"query": "SELECT bogus FROM tickets"}, "bogus"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    source = database(tmp_path / "t.duckdb", values(ticket()))
    with pytest.raises(SourceError, match=message):
        take_snapshot(source, tmp_path / "out", **changes)


def test_ids_and_group_keys_are_text_end_to_end(tmp_path: Path) -> None:
    source = csv_database(tmp_path / "t.duckdb", shared("cases", "a", "tickets_leading_zero_ids.csv"))
    take_snapshot(source, tmp_path / "out")
    keys = [key.removeprefix("customer_id=") for row in accepted(tmp_path / "out") for key in row.groups]
    assert keys == ["00042", "42", "9007199254740993", "9007199254740992", "1e5", "100000"]


def test_words_that_look_like_a_missing_value_are_words(tmp_path: Path) -> None:
    source = csv_database(tmp_path / "t.duckdb", shared("cases", "a", "tickets_na_labels.csv"))
    facts = take_snapshot(source, tmp_path / "out")
    kept = accepted(tmp_path / "out")
    assert [row.label for row in kept] == ["NA", "EU", "None", "N/A", "null", "EU", "<NA>"]
    assert {"nan", "NULL", "n/a"} <= {row.text for row in kept}
    assert kept[2].groups == ("customer_id=NA",)
    assert facts["rejects"] == {"missing_label": 1}


def test_a_nul_byte_rejects_the_row_and_truncates_nothing(tmp_path: Path) -> None:
    rows = ["('T1', 'C1', '2026-10-05T09:00:00Z', 'billing', 'refund' || chr(0) || ' please')", ticket("T0")]
    rows += [f"('T2' || chr(0) || '{n}', 'C2', '2026-10-05T09:00:00Z', 'billing', 'plain')" for n in (1, 2)]
    rows += ["('T4', 'C3', '2026-10-05T09:00:00Z', 'log' || chr(0) || 'in', 'x')"]
    rows += ["('T5', chr(0), '2026-10-05T09:00:00Z', 'login', 'x')"]
    facts = take_snapshot(database(tmp_path / "t.duckdb", values(*rows)), tmp_path / "out")
    assert facts["rejects"] == {"nul_byte": 5}
    assert set(reasons(tmp_path / "out")) == {"T1", "T2\x001", "T2\x002", "T4", "T5"}


def test_mixed_notations_are_read_or_rejected_and_never_lost(tmp_path: Path) -> None:
    source = csv_database(tmp_path / "t.duckdb", shared("cases", "a", "week_mixed_formats.csv"))
    week = {"window_start": "2026-10-04T00:00:00Z"}
    take_snapshot(source, tmp_path / "strict", **week)
    assert [row.id for row in accepted(tmp_path / "strict")] == ["T1", "T2"]
    assert set(reasons(tmp_path / "strict").values()) == {"bad_time"}
    take_snapshot(source, tmp_path / "declared", **week, timezone="Europe/Berlin")
    assert [row.id for row in accepted(tmp_path / "declared")] == ["T1", "T2", "T3"]


def test_a_week_with_a_clock_change_holds_its_rows(tmp_path: Path) -> None:
    file = shared("cases", "a", "week_dst.csv")
    source = csv_database(tmp_path / "t.duckdb", file, "created_at::TIMESTAMPTZ")
    berlin = {"window_start": "2026-10-18T22:00:00Z", "window_end": "2026-10-25T23:00:00Z"}
    take_snapshot(source, tmp_path / "out", **berlin)
    assert [row.id for row in accepted(tmp_path / "out")] == ["T1", "T2", "T3", "T4", "T5"]


def test_late_rows_join_the_next_snapshot_and_future_ones_none(tmp_path: Path) -> None:
    source = csv_database(tmp_path / "t.duckdb", shared("cases", "a", "week_late_arrivals.csv"))
    snapshots = {}
    for cut in ("2026-10-05T01:00:00Z", "2026-10-12T01:00:00Z"):
        out = tmp_path / cut[:10]
        window = {"window_start": "2026-09-01T00:00:00Z", "window_end": cut}
        take_snapshot(source, out, **window, columns={"ingestion_time": "ingested_at"})
        snapshots[cut] = [row.id for row in accepted(out)]
    assert list(snapshots.values()) == [["T1"], ["T1", "T2", "T3", "T4", "T6"]]


def test_rejects_that_were_frozen_without_byte_offsets_are_still_read(tmp_path: Path) -> None:
    from pyarrow import parquet

    reject = Reject("T1", "bad_time", 4, 3, 2, 17, "text", ("c=1",))
    write_rows(tmp_path / "now.parquet", [reject], Reject)
    parquet.write_table(parquet.read_table(tmp_path / "now.parquet").drop(["byte_offset"]), tmp_path / "old.parquet")
    assert read_rows(tmp_path / "now.parquet", Reject) == [reject]
    assert read_rows(tmp_path / "old.parquet", Reject) == [replace(reject, byte_offset=None)]
