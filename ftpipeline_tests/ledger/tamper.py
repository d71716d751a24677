"""Changing what a ledger never changes: by somebody who owns the database."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from ftpipeline.store.database import Database

TABLES = ("ledger_events", "ledger_jobs", "ledger_signed_heads")


@contextmanager
def without_triggers(database: Database) -> Iterator[Connection]:
    """Yield a writing connection on which no trigger fires."""
    with database.write() as connection:
        if connection.dialect.name == "postgresql":
            for table in TABLES:
                connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))
            yield connection
            for table in TABLES:
                connection.execute(text(f"ALTER TABLE {table} ENABLE TRIGGER USER"))
            return
        made = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")).all()
        for name, _ in made:
            connection.execute(text(f"DROP TRIGGER {name}"))
        yield connection
        for _, statement in made:
            connection.exec_driver_sql(statement)
