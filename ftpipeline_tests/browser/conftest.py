"""A browser for the Dagster UI."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from ftpipeline_tests.requirements import require

_WAIT_MS = 90_000
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
)
"""Without these Chromium needs a user, a graphics card and the network."""


@pytest.fixture
def page() -> Iterator[Page]:
    """A page that waits long enough for a busy machine and skips the UI's invitation of first visits."""
    program = require("chromium", "chromium-browser", "google-chrome", how="install it with: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_QUIET)
        page = browser.new_page(viewport={"width": 1400, "height": 1600})
        page.set_default_timeout(_WAIT_MS)
        expect.set_options(timeout=_WAIT_MS)
        # The invitation opens seconds after the first page, over whatever dialog stands there, and closes that with it.
        page.add_init_script("window.localStorage.setItem('communityNux', '1')")
        yield page
        browser.close()
