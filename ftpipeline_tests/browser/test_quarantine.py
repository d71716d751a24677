"""A person opens the UI after an incident, and sees who was tainted, how, and what was done about it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ftpipeline_tests.browser.test_materialise_all import expect_picture, expect_table, row
from ftpipeline_tests.cli.command import ftpipeline_program
from ftpipeline_tests.cycle.fleet_world import six_jobs
from ftpipeline_tests.orchestration.servers import WebServer, dagster_dev, deployment, needs_proc
from ftpipeline_tests.tiny_pipeline import build_tiny_pipeline

pytestmark = [pytest.mark.browser, needs_proc, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Shown:
    """An isolated incident by its name, the receipt of its isolation, and the UI that shows it."""

    incident: str
    receipt: str
    ui: WebServer

    def open(self, page: Page, job_id: str) -> None:
        """Look at what became of a job of the incident."""
        address = f"{self.ui.url}/assets/quarantine?view=partitions&partition={self.incident}.{job_id}"
        page.goto(address, wait_until="domcontentloaded")


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    place = deployment(tmp_path, build_tiny_pipeline(tmp_path / "pipeline"))
    monkeypatch.setenv("DAGSTER_HOME", str(place.home.dagster_home))
    with closing(place.home.open()) as store:
        six_jobs(store)
    done = ftpipeline_program("isolate", "A", "--home", place.home.root, "--json")
    assert done.code == 0, done.stderr
    with dagster_dev(place) as server:
        yield Shown(done.document["incident"], done.document["receipts"]["executed"], server)


def test_the_incident_is_shown_job_by_job(page: Page, shown: Shown) -> None:
    shown.open(page, "C")
    expect(row(page, "verdict")).to_contain_text("UNRECOVERABLE_CONTAMINATION")
    expect(row(page, "action")).to_contain_text("rollback")
    expect(row(page, "rolled back to")).to_contain_text("attempt 1, step 60")
    expect(row(page, "incident")).to_contain_text(shown.incident)
    for job_id in "ABC":
        expect_table(page, "witness path", job_id)
    expect_table(page, "all actions", "consumed nothing that is tainted")
    expect(row(page, "isolation receipt")).to_contain_text(shown.receipt.removeprefix("sha256:"))
    expect_picture(page, "graph")

    shown.open(page, "F")
    expect(row(page, "state")).to_contain_text("unrecoverable")


def test_the_run_that_isolated_and_the_failed_check_are_found_where_people_look(page: Page, shown: Shown) -> None:
    page.goto(f"{shown.ui.url}/runs", wait_until="domcontentloaded")
    expect(page.get_by_text("isolation_job").first).to_be_visible()
    expect(page.get_by_text("Success", exact=True).first).to_be_visible()

    page.goto(f"{shown.ui.url}/assets/tiny/train?view=checks", wait_until="domcontentloaded")
    expect(page.get_by_text("not_quarantined").first).to_be_visible()
    expect(page.get_by_text("Failed").first).to_be_visible()
