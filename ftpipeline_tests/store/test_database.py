import os
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from ftpipeline.errors import DatabaseError
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.tables import eval_set_versions, registry_pointers
from ftpipeline_tests.store.postgres_server import PostgresServer

DIGEST = f"sha256:{'0' * 64}"


def add(connection: Connection, name: str) -> None:
    connection.execute(eval_set_versions.insert().values(name=name, version="v1", digest=DIGEST))


def add_all(connection: Connection, *names: str) -> None:
    for name in names:
        add(connection, name)


def names(connection: Connection) -> list[str]:
    return list(connection.scalars(select(eval_set_versions.c.name).order_by(eval_set_versions.c.name)))


def names_in(database: Database) -> list[str]:
    with database.read() as connection:
        return names(connection)


def test_a_transaction_is_there_whole_or_not_at_all(database: Database) -> None:
    with database.write() as connection:
        add_all(connection, "one", "two")
    with pytest.raises(IntegrityError), database.write() as connection:
        add_all(connection, "three", "one")
    assert names_in(database) == ["one", "two"]


def test_a_read_sees_one_state(database: Database) -> None:
    with database.read() as reading:
        assert names(reading) == []
        with database.write() as writing:
            add(writing, "later")
        assert names(reading) == []
    assert names_in(database) == ["later"]


def test_what_a_read_writes_is_not_kept(database: Database) -> None:
    with suppress(DatabaseError), database.read() as connection:
        add(connection, "smuggled")
    assert names_in(database) == []


def test_rows_that_break_a_constraint_are_refused(database: Database) -> None:
    dangling = registry_pointers.insert().values(name="router", stage="production", entry_id=7, generation=1)
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(dangling)


def test_an_error_of_the_program_stays_what_it_is(database: Database) -> None:
    with pytest.raises(DBAPIError, match="no_such_table"), database.read() as connection:
        connection.execute(text("SELECT * FROM no_such_table"))


def test_writers_of_one_table_take_turns(database: Database) -> None:
    def append() -> None:
        for _ in range(10):
            with database.write() as connection:
                one_writer(connection, eval_set_versions)
                count = connection.scalar(select(func.count()).select_from(eval_set_versions))
                add(connection, f"{count:03}")

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names_in(database) == [f"{number:03}" for number in range(40)]


def test_a_database_that_stays_locked_is_one_line(database: Database, database_url: str) -> None:
    with closing(Database.open(database_url, busy_timeout=0.05)) as other, database.write() as holder:
        one_writer(holder, eval_set_versions)
        with pytest.raises(DatabaseError, match="lock") as caught, other.write() as connection:
            one_writer(connection, eval_set_versions)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_database_is_refused_after_a_fork(database: Database) -> None:
    assert names_in(database) == []
    if (child := os.fork()) == 0:
        try:
            names_in(database)
        except DatabaseError as error:
            os._exit(0 if "before a fork" in str(error) else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert names_in(database) == []


def test_sqlite_keeps_what_was_committed_through_a_power_cut(tmp_path: Path) -> None:
    with closing(Database.open(f"sqlite:///{tmp_path}/db")) as database, database.read() as connection:
        pragmas = ["journal_mode", "synchronous", "foreign_keys", "busy_timeout"]
        values = [connection.scalar(text(f"PRAGMA {pragma}")) for pragma in pragmas]
    assert values == ["wal", 2, 1, 60_000]


def test_a_write_in_sqlite_takes_its_turn_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/db"
    with closing(Database.open(url)) as database, closing(Database.open(url, busy_timeout=0.05)) as other:
        with database.write(), pytest.raises(DatabaseError, match="another process holds it"), other.write():
            pytest.fail("two writers at once")
        with database.write():
            assert names_in(other) == []  # readers never wait


# --- opening --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me@host/db",
        "postgresql://me@host/db",
        "sqlite://",
        "sqlite:///relative.db",
        "sqlite:////no/such/folder/db",
        "no url",
        "postgresql+psycopg://me@/db?nonsense=hunter2",
        "",
        "postgresql+psycopg://me:hunter2@host:port/db",
    ],
)
def test_a_url_that_cannot_be_used_is_one_line_without_its_secret(url: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        Database.open(url)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_the_password_is_never_shown(tmp_path: Path) -> None:
    url = f"postgresql+psycopg://me:hunter2@/db?host={tmp_path}&password=hunter2"
    with closing(Database(url)) as database:
        assert "hunter2" not in repr(database)
        assert "me@" in repr(database)
    with pytest.raises(DatabaseError) as caught:
        Database.open(url)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "db").write_text("id,text\n" * 1000)
    with pytest.raises(DatabaseError, match="not a database; name another file"):
        Database.open(f"sqlite:///{tmp_path}/db")


def test_a_folder_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="writable folder"):
        Database.open(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize(
    ("pragma", "advice"), [("max_page_count = 1", "free space"), ("query_only = ON", "make the file and its folder")]
)
def test_a_full_or_read_only_disk_is_one_line(tmp_path: Path, pragma: str, advice: str) -> None:
    def add_after_the_pragma(database: Database) -> None:
        with database.write() as connection:
            connection.exec_driver_sql(f"PRAGMA {pragma}")
            add(connection, "x" * 100_000)

    with closing(Database.open(f"sqlite:///{tmp_path}/db")) as database, pytest.raises(DatabaseError, match=advice):
        add_after_the_pragma(database)


@pytest.mark.postgres
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_lost_connection_is_one_line_and_the_next_one_works(database: Database) -> None:
    def add_after_the_connection_was_ended() -> None:
        with database.write() as connection, database.write() as other:
            own = connection.scalar(text("SELECT pg_backend_pid()"))
            other.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": own})
            add(connection, "lost")

    with pytest.raises(DatabaseError) as caught:
        add_after_the_connection_was_ended()
    assert "\n" not in str(caught.value)
    assert names_in(database) == []


def open_and_add(url: str, name: str) -> None:
    with closing(Database.open(url)) as database, database.write() as connection:
        add(connection, name)


def test_processes_that_open_an_empty_database_at_once_all_succeed(database_url: str) -> None:
    opened = [f"process {number}" for number in range(3)]
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        list(pool.map(open_and_add, [database_url] * 3, opened))
    with closing(Database.open(database_url)) as database:
        assert names_in(database) == opened


def open_in_step(turn: Barrier, folder: Path) -> None:
    for number in range(15):
        turn.wait()
        Database.open(f"sqlite:///{folder}/{number}.db").close()


def test_processes_that_create_sqlite_files_in_step_never_find_them_locked(tmp_path: Path) -> None:
    context = get_context("spawn")
    turn = context.Barrier(3, timeout=60)
    processes = [context.Process(target=open_in_step, args=(turn, tmp_path)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]


def test_opening_a_current_database_does_not_load_alembic(database_url: str) -> None:
    code = "import sys; from ftpipeline.store.database import Database; "
    code += "Database.open(sys.argv[1]).close(); print('alembic' in sys.modules)"
    answers = [
        subprocess.run([sys.executable, "-c", code, database_url], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert answers == ["True\n", "False\n"]


def test_a_closed_database_can_be_used_again(database: Database) -> None:
    uses: list[Callable[[], object]] = [database.close, lambda: names_in(database)]
    for use in uses * 2:
        use()


@pytest.mark.postgres
def test_a_schema_that_is_missing_or_forbidden_is_one_line(postgres_server: PostgresServer) -> None:
    with postgres_server.empty_database() as url:
        stranger = re.sub("//[^@]+@", "//stranger@", url)
        with closing(psycopg.connect(url.replace("+psycopg", ""), autocommit=True)) as owner:
            owner.execute("CREATE ROLE stranger LOGIN")
            with pytest.raises(DatabaseError, match="create the schema") as missing:
                Database.open(url.replace("search_path%3D", "search_path%3Dmissing_"))
            with pytest.raises(DatabaseError, match="usage of it") as hidden:
                Database.open(stranger)
            owner.execute("DO $$ BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || current_schema() || ' TO stranger'; END $$")
            with pytest.raises(DatabaseError, match="grant the user") as forbidden:
                Database.open(stranger)
            owner.execute("DROP OWNED BY stranger; DROP ROLE stranger")
    assert "\n" not in f"{missing.value}{hidden.value}{forbidden.value}"
