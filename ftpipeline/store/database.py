"""Transactions on SQLite or PostgreSQL, the same laws on both (contract C3).

Laws: what `write` did is there whole and durably, or not at all; what `read` sees is one state; a writer waits for
another, at most the busy timeout, and never deadlocks with it on one table taken by `one_writer`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Self

from sqlalchemy import Connection, Engine, Table, text

from ftpipeline.errors import DatabaseError
from ftpipeline.store import schema, worker_role
from ftpipeline.store.connections import connect, environment_errors, location, opening

BUSY_TIMEOUT_S = 60.0

_READ: Mapping[str, Mapping[str, Any]] = {
    "sqlite": {"sqlite_begin": "DEFERRED"},
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}
_WRITE: Mapping[str, Mapping[str, Any]] = {"sqlite": {"sqlite_begin": "IMMEDIATE"}, "postgresql": {}}


class Database:
    """An open database with the schema of this version."""

    def __init__(self, url: str, busy_timeout: float = BUSY_TIMEOUT_S) -> None:
        """Prepare connections to `url`, whatever its schema; `open` is what callers want."""
        self._engine = connect(url, busy_timeout)
        kind = self._engine.dialect.name
        self._readers = self._engine.execution_options(**_READ[kind])
        self._writers = self._engine.execution_options(**_WRITE[kind])
        self._process = os.getpid()

    @classmethod
    def open(cls, url: str, busy_timeout: float = BUSY_TIMEOUT_S, *, create: bool = True) -> Self:
        """Open the database, giving an empty one its tables.

        Args:
            url: `sqlite:////absolute/path` (created when missing) or `postgresql+psycopg://...` (must exist).
            busy_timeout: seconds to wait for another process's lock.
            create: make what is missing; if false, refuse a database that is missing or empty.

        Raises:
            DatabaseError: it cannot be reached or must not be made, or its schema is an older or newer one.
            MissingDependencyError: the driver is not installed.
        """
        database = cls(url, busy_timeout)
        try:
            database._settle(create)
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._engine.dispose()

    def __repr__(self) -> str:
        """Show where the database is, and nothing secret."""
        return f"Database({self.where!r})"

    @property
    def where(self) -> str:
        """The URL without its secrets."""
        return location(self._engine.url)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yield a connection in one transaction: committed at the end, rolled back by an exception.

        Raises:
            DatabaseError: the database is locked, lost, full or read-only, or was opened before a fork.
        """
        with self._connection(self._writers) as connection, connection.begin():
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the database; what it writes is rolled back or refused.

        Raises:
            DatabaseError: the database is locked or lost, or was opened before a fork.
        """
        with self._connection(self._readers) as connection:
            connection.begin()  # never committed: closing the connection rolls back
            yield connection

    def migrate(self) -> str | None:
        """Bring an empty or older schema to this version's; return the revision that was found.

        Raises:
            DatabaseError: the schema is a newer one.
        """
        with opening(self._engine.url), self.write() as connection:
            schema.wait_for_turn(connection)
            found = schema.revision(connection, self.where)
            if found is not None:
                schema.refuse_newer(found, self.where)
            if found != schema.HEAD:
                schema.migrate(connection)
            if connection.dialect.name == "postgresql":
                worker_role.grant(connection)
        return found

    def _settle(self, create: bool) -> None:
        url = self._engine.url
        if not create and url.drivername == "sqlite" and not os.path.exists(str(url.database)):
            raise self._empty()
        with opening(url), self.read() as connection:
            found = schema.revision(connection, self.where)
        if found is None and not create:
            raise self._empty()
        if found is None:
            found = self.migrate()
        if found is not None:  # by now, or by another process in between
            schema.refuse_other(found, self.where)

    def _empty(self) -> DatabaseError:
        return DatabaseError(f"database {self.where} holds nothing yet; run a week first, or name another home")

    @contextmanager
    def _connection(self, engine: Engine) -> Iterator[Connection]:
        if os.getpid() != self._process:
            raise DatabaseError(f"database {self.where} was opened before a fork; open it again in the new process")
        with environment_errors(engine.url), engine.connect() as connection:
            yield connection


def one_writer(connection: Connection, table: Table) -> None:
    """Let no other transaction write `table` until this one ends, so that sequence order is commit order.

    On SQLite, a `write` transaction is the only one anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"LOCK TABLE {table.name} IN SHARE ROW EXCLUSIVE MODE"))


def upgrade(url: str) -> tuple[str | None, str]:
    """Bring the database at `url` to this version's schema.

    Returns:
        The revision it had (None when it was empty) and the one it has.

    Raises:
        DatabaseError: it cannot be reached, or its schema is a newer one.
    """
    with closing(Database(url)) as database:
        return database.migrate(), schema.HEAD
