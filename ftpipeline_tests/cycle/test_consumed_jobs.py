"""A pipeline named in `train.consumes` is its one job of the week; anything else is refused."""

from typing import Any

import pytest

from ftpipeline.cycle.consumed_jobs import pinned
from ftpipeline.errors import UnknownNameError
from ftpipeline.ledger.ledger import Ledger, ledger_of
from ftpipeline.schema import Consumption
from ftpipeline.store.opened import Store

WEEK = "2026-W40"


@pytest.fixture
def ledger(store: Store) -> Ledger:
    """Return a ledger in which pipeline `a` has one job of the week, and `b` two."""
    ledger = ledger_of(store)
    for job_id, pipeline in (("a-1", "a"), ("b-1", "b"), ("b-2", "b")):
        open_job(ledger, job_id, pipeline).close("completed")
    return ledger


def open_job(ledger: Ledger, job_id: str, pipeline: str, **fields: Any):  # type: ignore[no-untyped-def]
    payload = {
        "run_id": "run",
        "pipeline": pipeline,
        "week": WEEK,
        "step_key": "sha256:" + "0" * 64,
        "inputs": {},
        "params_digest": "sha256:" + "1" * 64,
        "family": None,
        "checkpoint_steps": 10,
        "resumed_from": None,
        "code": "sha256:" + "2" * 64,
        **fields,
    }
    return ledger.open_job(job_id, payload, f"holder of {job_id}", 60.0)


def of(job: str) -> Consumption:
    return Consumption(use="warm_start", job=job, step=10)


def test_a_pipeline_is_its_job_of_the_week(ledger: Ledger) -> None:
    assert [each.job for each in pinned([of("a"), of("b-2")], ledger, WEEK)] == ["a-1", "b-2"]


def test_of_several_jobs_the_one_that_trains_is_meant(ledger: Ledger) -> None:
    open_job(ledger, "b-3", "b")
    assert pinned([of("b")], ledger, WEEK)[0].job == "b-3"


def test_a_replay_is_no_job_that_is_meant(ledger: Ledger) -> None:
    replay_of = {"job_id": "a-1", "incident": "feed", "arm": "as_recorded", "seed": 1}
    open_job(ledger, "replay-a-1", "a", replay_of=replay_of)
    assert pinned([of("a")], ledger, WEEK)[0].job == "a-1"
    with pytest.raises(UnknownNameError):
        pinned([of("replay-a-1")], ledger, WEEK)


def test_nothing_is_asked_where_nothing_is_consumed(ledger: Ledger) -> None:
    assert pinned([], ledger, WEEK) == ()


@pytest.mark.parametrize(("job", "week"), [("c", WEEK), ("a", "2026-W41"), ("b", WEEK)])
def test_what_names_no_job_or_several_is_refused(ledger: Ledger, job: str, week: str) -> None:
    with pytest.raises(UnknownNameError, match=r"ledger jobs|name one of them"):
        pinned([of(job)], ledger, week)
