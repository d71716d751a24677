"""A whole week, trained for real: what a person finds in the UI afterwards."""

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg
import pytest

from ftpipeline.digest import parse
from ftpipeline_tests.orchestration.location import ALL_STAGES, LEARNING, Location, tiny_location

pytestmark = pytest.mark.slow

TABLES = {
    "snapshot": {"labels", "label sources", "window"},
    "curate": {"labels", "stages"},
    "split": {"labels", "leaks", "rows"},
    "train": {"validation", "rows"},
    "export": {"files", "largest quantization errors"},
    "evaluate": {"scores"},
    "gate": {"comparison"},
    "register": {"goes back to"},
}
PICTURES = {
    "snapshot": "label distribution",
    "curate": "label distribution",
    "split": "label distribution",
    "train": "loss curve",
    "evaluate": "confusion",
}


@dataclass(frozen=True)
class Week:
    """A finished run and where it ran."""

    location: Location
    result: dg.ExecuteInProcessResult


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Week]:
    with tiny_location(tmp_path_factory.mktemp("week"), train=LEARNING) as location:
        yield Week(location, location.run(*ALL_STAGES))


def test_every_stage_succeeds_and_shows_its_digest(week: Week) -> None:
    assert week.result.success
    for stage in ALL_STAGES:
        shown = week.location.shown(week.result, stage)
        assert parse(shown["digest"].value)
        assert parse(shown["step key"].value)
        assert shown["action"].value == "executed"


@pytest.mark.parametrize("stage", TABLES)
def test_counts_and_scores_are_tables(week: Week, stage: str) -> None:
    shown = week.location.shown(week.result, stage)
    tables = {name for name, value in shown.items() if isinstance(value, dg.TableMetadataValue) and value.records}
    assert tables >= TABLES[stage]


@pytest.mark.parametrize("stage", PICTURES)
def test_curves_and_distributions_are_pictures(week: Week, stage: str) -> None:
    assert str(week.location.shown(week.result, stage)[PICTURES[stage]].value).startswith("![")


def test_the_registered_model_links_back_to_its_snapshot_and_source_query(week: Week) -> None:
    shown = week.location.shown(week.result, "register")
    assert shown["snapshot"].value == "/assets/tiny/snapshot?view=partitions&partition=2026-10-05"
    assert shown["base model"].value == "/assets/base_model/tiny-bert"
    assert "SELECT * FROM tickets" in str(shown["source query"].value)
    trail = shown["goes back to"]
    assert isinstance(trail, dg.TableMetadataValue)
    snapshot = week.location.digest(week.result, "snapshot")
    assert {"snapshot": snapshot[:19]}.items() <= {str(r.data["what"]): r.data["digest"] for r in trail.records}.items()


def test_the_checks_of_a_first_release_pass(week: Week) -> None:
    checks = {check.check_name: check.passed for check in week.result.get_asset_check_evaluations()}
    assert checks == {"no_leak_left": True, "gate_passed": True, "not_quarantined": True}


def test_the_worker_reports_its_progress_to_the_log(week: Week) -> None:
    assert any("train: 100/100" in record for record in week.location.log(week.result))


def test_no_ticket_text_is_in_the_event_log(week: Week) -> None:
    assert not week.location.texts_in_log(week.result)


def test_running_the_week_again_executes_nothing(week: Week) -> None:
    again = week.location.run(*ALL_STAGES)
    assert {week.location.shown(again, stage)["action"].value for stage in ALL_STAGES} == {"reused"}
