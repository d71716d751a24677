"""Which schema a database has, and how it comes to this version's (contract C3).

Revisions are four digits that count up, so an older one is smaller. They are kept in a table of their own, because
Dagster may keep `alembic_version` in the same PostgreSQL database.
"""

from sqlalchemy import Connection, column, inspect, select, table, text

from ftpipeline.errors import DatabaseError
from ftpipeline.store.tables import metadata

HEAD = "0004"
"""The revision that this version reads and writes."""

VERSION_TABLE = "ftpipeline_schema"
_MIGRATION_LOCK = 0x66747069  # any number that others would not take


def revision(connection: Connection, where: str) -> str | None:
    """Return the revision of the schema; None for a database without one.

    Raises:
        DatabaseError: the database holds tables of these names that are not ours.
    """
    found = set(inspect(connection).get_table_names())
    if VERSION_TABLE in found:
        revision = connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
        return None if revision is None else str(revision)
    if strangers := sorted(found & set(metadata.tables)):
        raise DatabaseError(
            f"database {where} has a table {strangers[0]!r} of another program; name another database in "
            "FTPIPELINE_DATABASE"
        )
    return None


def refuse_other(found: str, where: str) -> None:
    """Accept the schema that this version knows and no other.

    Raises:
        DatabaseError: the schema is an older or a newer one.
    """
    if found < HEAD:
        raise DatabaseError(f"database {where} has schema {found}, older than {HEAD}; run 'ftpipeline upgrade'")
    refuse_newer(found, where)


def refuse_newer(found: str, where: str) -> None:
    """Refuse a schema that this version cannot know.

    Raises:
        DatabaseError: the schema is a newer one.
    """
    if found > HEAD:
        raise DatabaseError(f"database {where} has schema {found}, newer than {HEAD}; install a newer ftpipeline")


def wait_for_turn(connection: Connection) -> None:
    """Let one transaction at a time migrate; on SQLite, `BEGIN IMMEDIATE` has already done so."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})


def migrate(connection: Connection) -> None:
    """Run the migrations up to `HEAD` inside the connection's transaction."""
    from alembic import command  # costs as much as everything else here, and is needed once in a database's life
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "ftpipeline.store:migrations")
    command.upgrade(config, HEAD)
