"""Fixtures that the whole suite shares."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings

from ftpipeline.store.database import Database
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.store.postgres_server import PostgresServer, private_server

# A shared machine may stall at any example; how long one takes says nothing about the code.
settings.register_profile("ftpipeline", deadline=None)
settings.load_profile("ftpipeline")

_PLACES = ("FTPIPELINE_HOME", "FTPIPELINE_STORE", "FTPIPELINE_DATABASE", "DAGSTER_HOME")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes longest start first; all else keeps its order."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for this session alone."""
    with private_server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ftpipeline.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.empty_database() as url:
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An open database with no rows, of each kind in turn."""
    with closing(Database.open(database_url)) as database:
        yield database


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that does not exist yet; the surroundings name no other places."""
    for name in _PLACES:
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    """An open store in a folder of its own."""
    with closing(home.open()) as store:
        yield store
