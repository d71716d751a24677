"""The role of workers, on a real PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import Connection, Executable, text
from sqlalchemy.exc import DBAPIError

from ftpipeline.errors import DatabaseError
from ftpipeline.store.database import Database
from ftpipeline.store.tables import leases, ledger_events, ledger_jobs, quarantine_marks
from ftpipeline.store.worker_role import ROLE, grant
from ftpipeline_tests.ledger.test_enforcement import following
from ftpipeline_tests.ledger.world import TTL, World
from ftpipeline_tests.store.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    """An open PostgreSQL database."""
    with postgres_server.empty_database() as url, closing(Database.open(url)) as database:
        yield database


@contextmanager
def as_worker(database: Database) -> Iterator[Connection]:
    """Yield a connection that has the worker's role and nothing else."""
    with database.write() as connection:
        connection.execute(text(f"SET LOCAL ROLE {ROLE}"))
        yield connection


def test_a_worker_inserts_the_next_event_under_its_lease(world: World) -> None:
    writer = world.open("a")
    event = following(writer)
    with as_worker(world.database) as connection:
        connection.execute(ledger_events.insert().values({**vars(event), "generation": writer.lease.generation}))
    assert world.ledger.verify("a") == event.head


def test_a_worker_that_lost_its_lease_is_refused(world: World) -> None:
    writer = world.open("a")
    event = following(writer)
    world.ledger.seize("a", "guard", TTL)
    with pytest.raises(DBAPIError, match="ledger lease:"), as_worker(world.database) as connection:
        connection.execute(ledger_events.insert().values({**vars(event), "generation": writer.lease.generation}))
    assert world.ledger.verify("a").seq == 0


DENIED: dict[str, Executable] = {
    "read events": ledger_events.select(),
    "change events": ledger_events.update().values(payload="{}"),
    "remove events": ledger_events.delete(),
    "empty events": text("TRUNCATE ledger_events"),
    "read heads": ledger_jobs.select(),
    "move heads": ledger_jobs.update().values(seq=0),
    "read leases": leases.select(),
    "take leases": leases.update().values(generation=9),
    "lift marks": quarantine_marks.update().values(lifted="now"),
    "make tables": text("CREATE TABLE leases2 (name text)"),
}


@pytest.mark.parametrize("action", DENIED)
def test_a_worker_may_do_nothing_else(world: World, action: str) -> None:
    world.open("a")
    with (
        pytest.raises(DatabaseError, match=r"permission denied|owner"),
        as_worker(world.database) as connection,
    ):
        connection.execute(DENIED[action])
    world.ledger.verify("a")


def test_a_temporary_table_does_not_deceive_the_triggers(world: World) -> None:
    writer = world.open("a")
    event = following(writer)
    with as_worker(world.database) as connection:
        connection.execute(text("CREATE TEMPORARY TABLE leases (name text, generation int, holder text)"))
        connection.execute(text("INSERT INTO leases VALUES ('job:a', 99, 'me')"))
        with pytest.raises(DBAPIError, match="ledger lease:"):
            connection.execute(ledger_events.insert().values({**vars(event), "generation": 99}))


def test_who_may_not_grant_is_told_so_and_stopped_by_nothing(database: Database) -> None:
    with database.write() as connection:
        schema = connection.scalar(text("SELECT current_schema()"))
        connection.execute(text(f"REVOKE INSERT ON ledger_events FROM {ROLE}"))
        connection.execute(text("CREATE ROLE somebody NOLOGIN"))
        connection.execute(text(f"GRANT USAGE ON SCHEMA {schema} TO somebody"))
        connection.execute(text("SET LOCAL ROLE somebody"))
        assert not grant(connection)
        connection.execute(text("RESET ROLE"))
        assert grant(connection)
        connection.execute(text("DROP OWNED BY somebody"))
        connection.execute(text("DROP ROLE somebody"))
