"""Fixtures of the ledger's tests."""

from pathlib import Path

import pytest

from ftpipeline.store.database import Database
from ftpipeline_tests.ledger.world import World


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    """A ledger without jobs, on each kind of database in turn."""
    return World.at(tmp_path / "home", database)
