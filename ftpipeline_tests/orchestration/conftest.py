"""Fixtures of the Dagster layer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ftpipeline_tests.orchestration.location import Location, tiny_location


@pytest.fixture
def location(tmp_path: Path) -> Iterator[Location]:
    """A tiny pipeline of its own."""
    with tiny_location(tmp_path) as location:
        yield location


@pytest.fixture
def dagster_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The DAGSTER_HOME of a deployment in `tmp_path`, also for this process."""
    folder = tmp_path / "home" / "dagster"
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    return folder
