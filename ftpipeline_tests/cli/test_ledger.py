"""The verbs of the ledger, as people and scripts call them."""

import json
from pathlib import Path

import pytest
from sqlalchemy import update

from ftpipeline.digest import Digest
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.store.tables import ledger_events
from ftpipeline_tests.cli.command import ftpipeline, open_home
from ftpipeline_tests.cycle.test_ledger_bundle import make_incident
from ftpipeline_tests.ledger.tamper import without_triggers


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with three jobs, of which one consumed from another."""
    folder = tmp_path / "home"
    with open_home(folder) as store:
        make_incident(store, ledger_of(store))
    return folder


def test_jobs_are_listed_with_their_place(home: Path) -> None:
    jobs = ftpipeline("ledger", "jobs", "--home", home, "--json").document["jobs"]
    assert [(job["job_id"], job["open"], job["attempt"], job["step"]) for job in jobs] == [
        ("a", False, 1, 10),
        ("b", True, 1, 5),
        ("c", True, 1, 1),
    ]
    assert [
        job["job_id"] for job in ftpipeline("ledger", "jobs", "--open", "--home", home, "--json").document["jobs"]
    ] == [
        "b",
        "c",
    ]
    shown = ftpipeline("ledger", "jobs", "--home", home).stdout
    assert "demo-2026-W45" in shown


def test_consumptions_are_listed_from_both_sides(home: Path) -> None:
    for job in ([], ["a"], ["b"]):
        consumed = ftpipeline("ledger", "consumed", *job, "--home", home, "--json").document["consumed"]
        assert [(event["consumer"], event["producer"], event["producer_step"], event["use"]) for event in consumed] == [
            ("b", "a", 10, "merge")
        ]
    assert ftpipeline("ledger", "consumed", "c", "--home", home, "--json").document == {"consumed": []}
    assert (
        "b (attempt 1, step 5) consumed checkpoint 10 of a" in ftpipeline("ledger", "consumed", "--home", home).stdout
    )


def test_the_manifest_of_a_cut_has_one_root(home: Path, tmp_path: Path) -> None:
    document = ftpipeline("ledger", "manifest", "--home", home, "--json").document
    assert [job["job_id"] for job in document["jobs"]] == ["b", "c"]
    (tmp_path / "cut.json").write_text(json.dumps(document["cut"]))
    again = ftpipeline("ledger", "manifest", "--cut", tmp_path / "cut.json", "--home", home, "--json").document
    assert again == document
    assert document["root"] in ftpipeline("ledger", "manifest", "--home", home).stdout


def test_what_verifies_is_told_and_what_is_broken_located(home: Path) -> None:
    good = ftpipeline("ledger", "verify", "--home", home, "--json")
    assert (good.code, [job["state"] for job in good.document["jobs"]]) == (0, ["verified"] * 3)
    with open_home(home) as store, without_triggers(store.database) as connection:
        connection.execute(
            update(ledger_events).where(ledger_events.c.job_id == "a", ledger_events.c.seq == 2).values(step=9)
        )
    bad = ftpipeline("ledger", "verify", "a", "c", "--home", home, "--json")
    assert bad.code == 1
    assert [(job["job_id"], job["state"], job["seq"]) for job in bad.document["jobs"]] == [
        ("a", "unverifiable", 2),
        ("c", "verified", 1),
    ]
    assert "unverifiable" in ftpipeline("ledger", "verify", "--home", home).stdout


def test_a_job_that_was_removed_whole_is_missed(home: Path) -> None:
    with open_home(home) as store, without_triggers(store.database) as connection:
        for table in ("ledger_events", "ledger_jobs", "ledger_signed_heads"):
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE job_id = 'a'")
    checked = ftpipeline("ledger", "verify", "--home", home, "--json")
    assert (checked.code, [(job["job_id"], job["state"]) for job in checked.document["jobs"]]) == (
        1,
        [("a", "missing"), ("b", "verified"), ("c", "verified")],
    )


def test_an_exported_ledger_is_proved_without_a_home(home: Path, tmp_path: Path) -> None:
    written = ftpipeline("ledger", "export", "-o", tmp_path / "ledger.tar", "--home", home, "--json")
    assert written.code == 0
    assert written.document["jobs"] == ["a", "b", "c"]
    proved = ftpipeline("verify", tmp_path / "ledger.tar", "--key", written.document["key"], "--json")
    assert (proved.code, proved.document["root"]) == (0, written.document["root"])
    assert [job["job_id"] for job in proved.document["jobs"]] == ["a", "b", "c"]
    assert [receipt["type"] for receipt in proved.document["receipts"]] == ["ftpipeline:isolation/v1"]
    shown = ftpipeline("verify", tmp_path / "ledger.tar", "--key", tmp_path / "ledger.pub.pem").stdout
    assert f"concurrent jobs {Digest(written.document['root'])}" in shown


def test_a_bundle_with_a_flipped_byte_is_one_line_and_exit_code_1(home: Path, tmp_path: Path) -> None:
    ftpipeline("ledger", "export", "b", "-o", tmp_path / "ledger.tar", "--home", home)
    data = bytearray((tmp_path / "ledger.tar").read_bytes())
    data[data.index(b'"loss"') + 1] ^= 1
    (tmp_path / "ledger.tar").write_bytes(data)
    refused = ftpipeline("verify", tmp_path / "ledger.tar", "--key", tmp_path / "ledger.pub.pem")
    assert refused.code == 1
    assert "ChainError: ledger of job a, event 2," in refused.stderr or "events/a.jsonl" in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["consumed", "z"], 2), (["verify", "z"], 1), (["manifest", "--cut", "nowhere.json"], 2)],
)
def test_what_is_unknown_is_one_line(home: Path, arguments: list[str], code: int) -> None:
    outcome = ftpipeline("ledger", *arguments, "--home", home)
    assert outcome.code == code
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("text", ["[]", "{", '{"a": "digest"}', '{"z": "sha256:%s"}' % ("0" * 64)])
def test_a_cut_that_is_none_is_refused(home: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "cut.json").write_text(text)
    outcome = ftpipeline("ledger", "manifest", "--cut", tmp_path / "cut.json", "--home", home)
    assert outcome.code == 2
    assert outcome.stderr.count("\n") == 1
