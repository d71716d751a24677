"""A person opens the UI, presses Materialize all, and looks at what came out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from ftpipeline_tests.orchestration.location import LEARNING
from ftpipeline_tests.orchestration.servers import LOCATION, WebServer, dagster_dev, deployment, needs_proc
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline

pytestmark = [pytest.mark.browser, needs_proc, pytest.mark.timeout(600)]

_RUN_MS = 240_000


@pytest.fixture
def ui(tmp_path: Path) -> Iterator[WebServer]:
    """`dagster dev` on a tiny pipeline."""
    pipeline_file = build_tiny_pipeline(tmp_path / "pipeline", train=LEARNING)
    with dagster_dev(deployment(tmp_path, pipeline_file)) as server:
        yield server


def test_materialize_all_makes_a_week_and_shows_it(page: Page, ui: WebServer) -> None:
    materialise_all(page, ui, WEEK)

    open_week(page, ui, "train")
    expect_digest(page)
    expect_table(page, "validation", "macro_f1")
    expect_picture(page, "loss curve")

    open_week(page, ui, "evaluate")
    expect_table(page, "scores", "candidate")
    expect_picture(page, "confusion")

    open_week(page, ui, "gate")
    expect(row(page, "verdict")).to_contain_text("first_release")
    expect_table(page, "comparison", "regression")

    open_week(page, ui, "register")
    expect_digest(page)
    expect_table(page, "goes back to", "train data")
    expect(row(page, "source query")).to_contain_text("SELECT * FROM tickets")
    with page.expect_popup() as opened:
        row(page, "snapshot").get_by_role("link").first.click()
    expect(row(opened.value, "accepted")).to_contain_text("300")


def materialise_all(page: Page, ui: WebServer, week: str) -> None:
    """Press the button of the pipeline's asset group, choose one week, and wait for the run's success."""
    page.goto(f"{ui.url}/locations/{LOCATION}/asset-groups/tiny", wait_until="domcontentloaded")
    page.get_by_role("button", name="Materialize all").click()
    expect(page.get_by_text("Launch runs to materialize 13 assets")).to_be_visible()
    partitions = page.get_by_placeholder("No matching partitions")
    partitions.fill(week)
    partitions.press("Enter")
    page.get_by_role("button", name="Launch 1 run").click()
    run = page.locator('a[href^="/runs/"]').first.get_attribute("href")
    page.goto(f"{ui.url}{run}", wait_until="domcontentloaded")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=_RUN_MS)


def open_week(page: Page, ui: WebServer, stage: str) -> None:
    address = f"{ui.url}/assets/tiny/{stage}?view=partitions&partition={WEEK}"
    page.goto(address, wait_until="domcontentloaded")


def row(page: Page, name: str) -> Locator:
    """Return the metadata of a name; tables within tables have rows of their own."""
    return page.locator(f"xpath=//tr[not(ancestor::tr)][td[1][normalize-space()='{name}']]")


def expect_digest(page: Page) -> None:
    expect(row(page, "digest")).to_contain_text(re.compile(r"sha256:[0-9a-f]{64}"))


def expect_table(page: Page, name: str, cell: str) -> None:
    expect(row(page, name).locator("table")).to_contain_text(cell)


def expect_picture(page: Page, name: str) -> None:
    """Open a picture, and see that the browser could draw it."""
    row(page, name).get_by_text("[Show Markdown]").click()
    picture = page.get_by_role("dialog").locator("img")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.naturalWidth") > 100
    page.get_by_role("button", name="Close").click()
