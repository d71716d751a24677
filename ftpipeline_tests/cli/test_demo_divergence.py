"""The demo's third act, with its real jobs: one diverges, those that read of it go back, and the last is untouched."""

import json
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.cli.demo_divergence import diverge, show
from ftpipeline.example.fleet import BLEND, HOT, SECOND_BLEND, STEADY
from ftpipeline.example.tickets import generate
from ftpipeline.guard.plan import Action
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.store.home import Home
from ftpipeline_tests.cli.command import open_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WEEK = "2026-W46"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    generate(folder)
    return folder


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DAGSTER_HOME", "")
        return diverge(folder, Home(folder / "home"), WEEK)


def test_each_job_has_the_action_that_it_needs(told: dict[str, Any]) -> None:
    actions = {job["pipeline"]: job["action"] for job in told["jobs"]}
    assert actions == dict.fromkeys((HOT, BLEND, SECOND_BLEND), Action.ROLLBACK) | {STEADY: Action.NONE}
    assert {job["pipeline"]: job["witness"] for job in told["jobs"]}[SECOND_BLEND] == [HOT, BLEND, SECOND_BLEND]


def test_the_untouched_job_ends_well_and_every_chain_verifies(folder: Path, told: dict[str, Any]) -> None:
    with open_home(folder / "home") as store:
        ledger = ledger_of(store)
        reasons = {}
        for head in ledger.jobs():
            ledger.verify(head.job_id)
            reasons[head.opened["pipeline"]] = ledger.events(head.job_id)[-1].payload["reason"]
    assert reasons == dict.fromkeys((HOT, BLEND, SECOND_BLEND), "halted") | {STEADY: "completed"}


def test_what_scripts_read_is_strict_json_and_people_see_the_same(
    told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    show(told)
    shown = capsys.readouterr().out
    assert all(text in shown for text in (told["incident"], "rollback", f"{HOT} > {BLEND} > {SECOND_BLEND}"))


def test_a_demo_that_is_run_again_tells_of_the_same_incident(folder: Path, told: dict[str, Any]) -> None:
    again = diverge(folder, Home(folder / "home"), WEEK)
    assert {**again, "seconds": 0} == {**told, "seconds": 0}
