import re
from contextlib import closing

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from ftpipeline.errors import DatabaseError
from ftpipeline.store import schema
from ftpipeline.store.database import Database, upgrade
from ftpipeline.store.tables import metadata


def stamp(database: Database, revision: str) -> None:
    with database.write() as connection:
        connection.execute(text(f"UPDATE {schema.VERSION_TABLE} SET version_num = :new"), {"new": revision})


def test_the_migrations_end_at_head_and_their_revisions_count_up() -> None:
    config = Config()
    config.set_main_option("script_location", "ftpipeline.store:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [schema.HEAD]
    newest_first = [script.revision for script in scripts.walk_revisions()]
    assert newest_first == sorted(newest_first, reverse=True)
    assert all(re.fullmatch(r"\d{4}", revision) for revision in newest_first)


def test_the_migrations_make_exactly_the_declared_tables(database: Database) -> None:
    options = {"version_table": schema.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_upgrading_tells_what_was_found(database_url: str) -> None:
    assert upgrade(database_url) == (None, schema.HEAD)
    assert upgrade(database_url) == (schema.HEAD, schema.HEAD)
    Database.open(database_url).close()


def test_an_older_schema_is_refused_with_the_way_to_upgrade(database: Database, database_url: str) -> None:
    stamp(database, "0000")
    with pytest.raises(DatabaseError, match="run 'ftpipeline upgrade'"):
        Database.open(database_url)


def test_a_newer_schema_is_refused_and_never_touched(database: Database, database_url: str) -> None:
    stamp(database, "9999")
    for use in (Database.open, upgrade):
        with pytest.raises(DatabaseError, match="newer than") as caught:
            use(database_url)
        assert caught.value.exit_code == 3
    with database.read() as connection:
        assert schema.revision(connection, database.where) == "9999"


def test_tables_of_another_program_are_left_alone(database_url: str) -> None:
    with closing(Database(database_url)) as foreign, foreign.write() as connection:
        connection.execute(text("CREATE TABLE pointers (theirs INTEGER)"))
    for use in (Database.open, upgrade):
        with pytest.raises(DatabaseError, match="'pointers' of another program"):
            use(database_url)
