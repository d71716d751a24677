from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from multiprocessing import get_context
from typing import Any

import pytest
from sqlalchemy import select, update

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.errors import CanonicalFormError, LeaseLostError
from ftpipeline.records import LineageRecord
from ftpipeline.store.database import Database
from ftpipeline.store.leases import Leases
from ftpipeline.store.results import StepResults, utc_text
from ftpipeline.store.tables import step_results

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def digest(name: str) -> Digest:
    return of_bytes(name.encode())


def result(key: str, *, output: str = "output", inputs: Mapping[str, str] | None = None, **rest: Any) -> LineageRecord:
    record = LineageRecord(
        step="curate",
        key=digest(key),
        code=digest("code"),
        inputs={name: digest(content) for name, content in (inputs or {}).items()},
        params={"threshold": {"type": "float", "value": "0.5"}, "names": ["ä", "\n"]},
        output=digest(output),
        facts={"kept": 3, "share": 0.25, "none": None},
        run_id="run",
        isolation="none",
        started=NOON,
        finished=NOON + timedelta(microseconds=1),
        cpu_seconds=1.5,
        environment=digest("environment"),
        libraries={"duckdb": "2.0.1"},
        manifest=digest("manifest"),
        escalations=("module a: computed import",),
    )
    return replace(record, **rest)


@pytest.fixture
def results(database: Database) -> StepResults:
    return StepResults(database)


@pytest.mark.parametrize("manifest", [None, digest("manifest")])
def test_a_record_reads_back_equal(results: StepResults, manifest: Digest | None) -> None:
    record = result("key", inputs={"snapshot": "rows"}, manifest=manifest)
    assert results.record(record) == record
    assert results.find(record.key) == record


def test_a_key_without_a_result_finds_nothing(results: StepResults) -> None:
    assert results.find(digest("unknown")) is None
    assert results.made(digest("unknown")) == []
    assert results.dependants(digest("unknown")) == []


def test_the_first_result_of_a_key_stands(results: StepResults) -> None:
    first = results.record(result("key", output="one", run_id="first"))
    assert results.record(result("key", output="two", run_id="second")) == first
    assert results.find(digest("key")) == first
    assert results.made(digest("two")) == []


def test_results_of_one_output_come_in_the_order_they_were_finished(results: StepResults) -> None:
    moments = {"late": NOON + timedelta(seconds=1), "early": NOON, "middle": NOON + timedelta(milliseconds=1)}
    for key, finished in moments.items():
        results.record(result(key, finished=finished))
    results.record(result("other", output="another"))
    assert [record.key for record in results.made(digest("output"))] == [
        digest("early"),
        digest("middle"),
        digest("late"),
    ]


def test_dependants_are_the_outputs_that_had_the_digest_as_an_input(results: StepResults) -> None:
    results.record(result("1", output="train", inputs={"snapshot": "rows"}))
    results.record(result("2", output="valid", inputs={"base": "model", "snapshot": "rows"}, finished=NOON))
    results.record(result("3", output="train", inputs={"again": "rows"}))
    results.record(result("4", output="unrelated", inputs={digest("rows"): "other"}))
    results.record(result("5", output="rows"))
    assert results.dependants(digest("rows")) == [digest("valid"), digest("train")]


def test_times_are_kept_in_utc(results: StepResults) -> None:
    record = results.record(result("key", started=NOON.astimezone(timezone(timedelta(hours=2)))))
    assert (record.started, record.started.tzinfo) == (NOON, UTC)


@pytest.mark.parametrize(
    "bad",
    [
        {"facts": {"loss": float("nan")}},
        {"params": {"path": object()}},
        {"cpu_seconds": float("nan")},
        {"started": datetime(2026, 11, 2, 12)},
    ],
)
def test_a_record_without_a_canonical_form_is_not_written(results: StepResults, bad: dict[str, Any]) -> None:
    with pytest.raises(CanonicalFormError):
        results.record(result("key", **bad))
    assert results.find(digest("key")) is None


# --- use and fences -------------------------------------------------------------------------------------------------


def used(database: Database, key: Digest) -> str:
    with database.read() as connection:
        return str(connection.scalars(select(step_results.c.used).where(step_results.c.key == key)).one())


@pytest.mark.parametrize(("ago", "is_renewed"), [(timedelta(minutes=50), False), (timedelta(minutes=70), True)])
def test_a_hit_renews_the_time_of_use_once_an_hour(
    results: StepResults, database: Database, ago: timedelta, is_renewed: bool
) -> None:
    record = results.record(result("key"))
    before = utc_text(datetime.now(UTC) - ago)
    with database.write() as connection:
        connection.execute(update(step_results).values(used=before))
    assert results.find(record.key) == record
    assert used(database, record.key) == before
    assert results.use(record.key) == record
    assert (used(database, record.key) > before) == is_renewed


def test_what_was_not_computed_cannot_be_used(results: StepResults) -> None:
    assert results.use(digest("unknown")) is None


def test_a_record_is_written_under_the_lease_that_stands(results: StepResults, database: Database) -> None:
    leases = Leases(database)
    first = leases.acquire("key", "first", 0.0)
    assert first is not None
    leases.acquire("key", "second", 0.0)
    second = leases.acquire("key", "second", 0.0)
    assert second is not None
    with pytest.raises(LeaseLostError):
        results.record(result("key", output="one"), first)
    assert results.find(digest("key")) is None
    assert results.record(result("key", output="two"), second).output == digest("two")


def record_all(url: str, run_id: str) -> list[str]:
    with closing(Database.open(url)) as database:
        results = StepResults(database)
        return [results.record(result(f"key {number}", run_id=run_id)).run_id for number in range(20)]


def test_processes_that_compute_the_same_keys_get_the_same_records(database_url: str) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        answers = list(pool.map(record_all, [database_url] * 3, ["one", "two", "three"]))
    assert answers[0] == answers[1] == answers[2]
