from pathlib import Path

import pytest

from ftpipeline.store.database import Database
from ftpipeline_tests.registry.world import World


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    return World(database, tmp_path / "store")
