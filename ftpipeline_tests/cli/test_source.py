"""`source check` accounts for every row of a pipeline's source, or of a bare file whose schema it proposes."""

from pathlib import Path

import pytest
import yaml

from ftpipeline_tests.cli.command import ftpipeline
from ftpipeline_tests.shared import shared
from ftpipeline_tests.tiny_pipeline import build_tiny_pipeline, write_pipeline

CSV = "ticket_id,customer_id,created_at,queue,text\n"
GOOD = "T1,007,2026-10-05T09:00:00Z,NA,write to a@b.example\n"
BAD = "T2,C2,2026-10-05T09:00:00Z,,call +44 20 7946 0018\nT3\n"
COLUMNS = {
    "id": "ticket_id",
    "text": "text",
    "label": "queue",
    "event_time": "created_at",
    "groups": ["customer_id"],
}


def test_a_bare_file_is_read_with_a_proposed_schema(tmp_path: Path) -> None:
    (tmp_path / "tickets.csv").write_text(CSV + GOOD + BAD, "utf-8")
    done = ftpipeline("source", "check", tmp_path / "tickets.csv", "--json")
    assert done.code == 0
    assert done.document["source"]["columns"] == COLUMNS
    assert {name: value for name, value in done.document.items() if name != "source"} == {
        "read": 3,
        "accepted": 1,
        "rejected": 2,
        "reasons": {"field_count": 1, "missing_label": 1},
        "rejects": [
            {"line": 3, "row": 2, "byte_offset": len(CSV + GOOD), "reason": "missing_label", "excerpt": "call [PHONE]"},
            {"line": 4, "row": 3, "byte_offset": len(CSV + GOOD + BAD) - 3, "reason": "field_count", "excerpt": "T3"},
        ],
    }


def test_a_person_sees_the_schema_as_yaml_and_the_rejects_as_a_table(tmp_path: Path) -> None:
    (tmp_path / "tickets.csv").write_text(CSV + GOOD + BAD, "utf-8")
    shown = ftpipeline("source", "check", tmp_path / "tickets.csv").stdout
    section = shown[shown.index("source:") : shown.index("3 read")]
    assert yaml.safe_load(section)["source"]["columns"] == COLUMNS
    assert "1 missing_label" in shown
    assert "[PHONE]" in shown


def test_a_bad_line_is_found_again_at_its_byte_offset(tmp_path: Path) -> None:
    content = (
        b'\xef\xbb\xbf{"ticket_id": "1", "text": "\xc3\xbc\xff"}\r\n\n'
        b'{"ticket_id": "2", "text": ""}\n{"ticket_id": "3", "text": "cut'
    )
    (tmp_path / "tickets.jsonl").write_bytes(content)
    rejects = ftpipeline("source", "check", tmp_path / "tickets.jsonl", "--json").document["rejects"]
    assert [(reject["line"], reject["row"], reject["reason"]) for reject in rejects] == [
        (1, 1, "bad_encoding"),
        (3, 2, "empty_text"),
        (4, 3, "malformed_json"),
    ]
    assert [content[reject["byte_offset"] :].split(b"\n")[0] for reject in rejects] == [
        line for line in content.split(b"\n") if line
    ]


def test_the_proposed_schema_is_one_that_a_pipeline_takes(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    build_tiny_pipeline(folder)
    (folder / "tickets.csv").write_text(CSV + GOOD, "utf-8")
    source = ftpipeline("source", "check", folder / "tickets.csv", "--json").document["source"]
    done = ftpipeline("source", "check", write_pipeline(folder / "other.yaml", source=source), "--json")
    assert (done.code, done.document["accepted"]) == (0, 1)


def test_a_pipelines_source_is_read_whole(tmp_path: Path) -> None:
    done = ftpipeline("source", "check", build_tiny_pipeline(tmp_path), "--json")
    assert done.code == 0
    assert (done.document["read"], done.document["accepted"]) == (360, 360)


def test_too_many_rejects_are_shown_and_then_refused(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    build_tiny_pipeline(folder)
    (folder / "tickets.csv").write_text(CSV + GOOD + BAD, "utf-8")
    source = {"file": {"path": "tickets.csv"}, "columns": COLUMNS}
    done = ftpipeline("source", "check", write_pipeline(folder / "other.yaml", source=source), "--json")
    assert (done.code, done.document["rejected"]) == (2, 2)
    assert "2 of 3 rows are rejected" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("tickets.txt", "x", 2, "is no pipeline file and no source file"),
        ("missing.csv", None, 3, "missing.csv cannot be read"),
        ("tickets.csv", "a,b\n1,2\n", 2, "none of its columns (a, b) is called text"),
        ("tickets.csv", "", 2, "line 1 is no header"),
        ("tickets.parquet", "no parquet", 2, "is no readable Parquet"),
    ],
)
def test_what_cannot_be_checked_is_one_line(
    tmp_path: Path, name: str, content: str | None, code: int, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, "utf-8")
    done = ftpipeline("source", "check", tmp_path / name, "--json")
    assert (done.code, done.stdout) == (code, "")
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"columns": COLUMNS}, "give one of duckdb, postgres and file"),
        ({"duckdb": "a", "file": {"path": "a.csv"}, "columns": COLUMNS}, "give one of duckdb, postgres and file"),
        ({"duckdb": "a", "columns": COLUMNS}, "query is missing"),
        ({"file": {"path": "a.csv"}, "query": "SELECT 1", "columns": COLUMNS}, "a file has no query"),
        ({"file": {"path": "a.txt"}, "columns": COLUMNS}, "'txt' is no format of a source file"),
        ({"postgres": {"name": "p", "url_env": "a=b"}, "query": "SELECT 1", "columns": COLUMNS}, "url_env"),
    ],
)
def test_a_source_section_that_names_no_one_place_is_refused(
    tmp_path: Path, source: dict[str, object], message: str
) -> None:
    done = ftpipeline("source", "check", write_pipeline(tmp_path / "pipeline.yaml", source=source))
    assert done.code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("name", "accepted", "reasons"),
    [
        ("tickets_bom.csv", 2, {}),
        ("tickets_dialect_switch.csv", 3, {}),
        ("tickets_label_variants.csv", 15, {}),
        ("tickets_leading_zero_ids.csv", 7, {}),
        ("tickets_na_labels.csv", 7, {"missing_label": 1}),
        ("tickets_null_group.csv", 7, {}),
        ("tickets_nulls.csv", 0, {"nul_byte": 5}),
        ("week_dst.csv", 10, {}),
        ("week_late_arrivals.csv", 5, {"from_the_future": 1}),
        ("week_mixed_formats.csv", 2, {"bad_time": 8}),
        (
            "tickets_malformed.jsonl",
            1,
            {"bad_encoding": 1, "duplicate_key": 1, "malformed_json": 4, "non_finite_number": 1, "not_an_object": 1},
        ),
    ],
)
def test_the_shared_files_are_accounted_for(name: str, accepted: int, reasons: dict[str, int]) -> None:
    document = ftpipeline("source", "check", shared("cases", "a", name), "--json").document
    assert (document["accepted"], document["reasons"]) == (accepted, reasons)
    assert document["read"] == accepted + sum(reasons.values())
