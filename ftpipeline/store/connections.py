"""Engines for the two databases, and what their failures mean to a person."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from ftpipeline.errors import DatabaseError, MissingDependencyError
from ftpipeline.store.mounts import network_file_system

_HOW = "use sqlite:////absolute/path or postgresql+psycopg://user@host/database"
_CONNECT_TIMEOUT_S = 10

_SQLITE_ADVICE = {
    sqlite3.SQLITE_BUSY: "another process holds it; run again when that one is done",
    sqlite3.SQLITE_LOCKED: "another process holds it; run again when that one is done",
    sqlite3.SQLITE_PERM: "make the file and its folder writable",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "make sure that it is a file in a writable folder",
    sqlite3.SQLITE_FULL: "free space on its disk",
    sqlite3.SQLITE_IOERR: "check its disk",
    sqlite3.SQLITE_CORRUPT: "restore it from a backup",
    sqlite3.SQLITE_NOTADB: "name another file in FTPIPELINE_DATABASE",
}
_POSTGRES_ADVICE = "check the server, its locks, and FTPIPELINE_DATABASE"
_SQLSTATE_ADVICE = {
    "25006": _POSTGRES_ADVICE,  # a transaction that may only read
    "3F000": "create the schema that the connection's search_path names, and grant the user usage of it",
    "42501": "grant the user of FTPIPELINE_DATABASE create and use of the schema and its tables",
}


def connect(url: str, busy_timeout: float) -> Engine:
    """Return an engine for `url`; no connection is made yet.

    Args:
        url: `sqlite:////absolute/path` or `postgresql+psycopg://...`.
        busy_timeout: seconds to wait for a lock that another process holds.

    Raises:
        DatabaseError: the URL cannot be used.
        MissingDependencyError: the driver is not installed.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The cause quotes parts of the URL, and with them perhaps of a password.
        raise DatabaseError(f"the database URL cannot be parsed; {_HOW}, and percent-encode the password") from None
    if parsed.drivername == "sqlite":
        return _sqlite(parsed, busy_timeout)
    if parsed.drivername == "postgresql+psycopg":
        return _postgres(parsed, busy_timeout)
    raise DatabaseError(f"database driver {parsed.drivername!r} is not supported; {_HOW}")


def location(url: URL) -> str:
    """Return `url` without anything secret."""
    host = url.host or url.query.get("host")
    shown = URL.create(url.drivername, url.username, None, str(host) if host else None, url.port, url.database)
    return shown.render_as_string()


@contextmanager
def opening(url: URL) -> Iterator[None]:
    """Let one process at a time open a SQLite file, whose switch to WAL does not wait for its turn by itself.

    Raises:
        DatabaseError: the file's folder cannot be read.
    """
    if url.drivername != "sqlite":
        yield  # PostgreSQL needs no such turn; its migrations take a lock of their own
        return
    # The folder is locked: closing any descriptor of the file would drop SQLite's own locks on it.
    folder = Path(str(url.database)).parent
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise DatabaseError(f"database folder {str(folder)!r}: {error.strerror}; make it readable") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def environment_errors(url: URL) -> Iterator[None]:
    """Turn what the surroundings did to the database into one line; errors of the program stay as they are.

    Raises:
        DatabaseError: the database is locked, unreachable, read-only, full or damaged.
    """
    try:
        yield
    except PoolTimeoutError as error:
        raise DatabaseError(f"database {location(url)} has no free connection; run fewer jobs at once") from error
    except DBAPIError as error:
        advice = _advice(error)
        if advice is None:
            raise
        problem = " ".join(str(error.orig).split())
        if url.password:
            problem = problem.replace(str(url.password), "***")
        raise DatabaseError(f"database {location(url)}: {problem}; {advice}") from error


def _sqlite(url: URL, busy_timeout: float) -> Engine:
    if not url.database or not Path(url.database).is_absolute():
        raise DatabaseError(f"database {location(url)} is not an absolute path; {_HOW}")
    path = Path(url.database)
    if not path.parent.is_dir():
        raise DatabaseError(f"database folder {str(path.parent)!r} does not exist; create it")
    if kind := network_file_system(path):
        raise DatabaseError(
            f"database {location(url)} is on a network file system ({kind}), whose locks SQLite cannot trust; "
            "set FTPIPELINE_DATABASE to a local file or to PostgreSQL"
        )
    # isolation_level=None: the driver begins nothing by itself, so that the event below decides how to begin.
    engine = create_engine(url, connect_args={"timeout": busy_timeout, "isolation_level": None})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, record: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    mode = connection.get_execution_options().get("sqlite_begin", "DEFERRED")
    connection.exec_driver_sql(f"BEGIN {mode}")


def _postgres(url: URL, busy_timeout: float) -> Engine:
    try:
        engine = create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": _CONNECT_TIMEOUT_S})
    except ModuleNotFoundError as error:
        raise MissingDependencyError("PostgreSQL needs the package psycopg; install ftpipeline[postgres]") from error

    def set_up(connection: Any, record: object) -> None:
        connection.execute(f"SET lock_timeout = {round(busy_timeout * 1000)}")
        connection.commit()

    event.listen(engine, "connect", set_up)
    return engine


def _advice(error: DBAPIError) -> str | None:
    """Return what to do about an error of the surroundings; None for an error of the program."""
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        return _SQLITE_ADVICE.get(code & 0xFF)  # the rest of an extended code says which kind of it
    if advice := _SQLSTATE_ADVICE.get(getattr(error.orig, "sqlstate", None) or ""):
        return advice
    # Without a statement it is the connection that failed: the URL has an option that the driver does not know.
    is_environment = isinstance(error, OperationalError) or error.connection_invalidated or error.statement is None
    return _POSTGRES_ADVICE if is_environment else None
