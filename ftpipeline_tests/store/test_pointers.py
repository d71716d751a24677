from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context

import pytest
from sqlalchemy import func, select

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.errors import QuarantinedError
from ftpipeline.store.database import Database
from ftpipeline.store.pointers import Pointer, Pointers
from ftpipeline.store.quarantine import Quarantine
from ftpipeline.store.tables import pointers as table

OLD, NEW, OTHER = (of_bytes(name) for name in (b"old", b"new", b"other"))
WEEK, OLDER_WEEK = "2026-11-02", "2026-10-26"


@pytest.fixture
def pointers(database: Database) -> Pointers:
    return Pointers(database)


def rows_in(database: Database) -> int:
    with database.read() as connection:
        return connection.scalars(select(func.count()).select_from(table)).one()


def found(pointer: Pointer | None) -> Digest | None:
    return None if pointer is None else pointer.digest


def test_what_was_never_written_is_not_found(pointers: Pointers) -> None:
    pointers.put("curate", WEEK, "run", 0, OLD)
    assert pointers.find("curate", OLDER_WEEK, ["run"]) is None
    assert pointers.latest("split", WEEK) is None
    assert pointers.latest("curate", None) is None


@pytest.mark.parametrize("partition", [WEEK, None])
def test_a_pointer_reads_back(pointers: Pointers, partition: str | None) -> None:
    pointers.put("curate", partition, "run", 2, OLD)
    pointer = pointers.latest("curate", partition)
    assert pointer is not None
    assert pointer == Pointer("curate", partition, "run", 2, OLD, pointer.seq)


def test_a_run_reads_what_it_wrote_itself(pointers: Pointers) -> None:
    pointers.put("curate", WEEK, "mine", 0, OLD)
    pointers.put("curate", WEEK, "theirs", 0, NEW)
    assert found(pointers.find("curate", WEEK, ["mine"])) == OLD
    assert found(pointers.latest("curate", WEEK)) == NEW


def test_a_re_execution_reads_its_nearest_parent_that_wrote(pointers: Pointers) -> None:
    pointers.put("curate", WEEK, "parent", 0, NEW)
    pointers.put("curate", WEEK, "grandparent", 0, OLD)
    pointers.put("curate", WEEK, "stranger", 0, OTHER)
    lineage = ["mine", "parent", "grandparent"]
    assert found(pointers.find("curate", WEEK, lineage)) == NEW
    assert found(pointers.find("curate", WEEK, ["mine", "grandparent", "parent"])) == OLD
    pointers.put("curate", WEEK, "mine", 0, OTHER)
    assert found(pointers.find("curate", WEEK, lineage)) == OTHER


def test_a_run_that_wrote_nothing_reads_the_latest_by_commit_order(pointers: Pointers) -> None:
    pointers.put("curate", WEEK, "z", 5, OLD)
    pointers.put("curate", WEEK, "a", 0, NEW)
    assert found(pointers.find("curate", WEEK, ["mine", "parent"])) == NEW


def test_the_newest_row_of_a_run_counts(pointers: Pointers) -> None:
    pointers.put("curate", WEEK, "run", 0, OLD)
    pointers.put("curate", WEEK, "run", 1, NEW)
    assert found(pointers.find("curate", WEEK, ["run"])) == NEW


def test_a_backfill_of_an_old_week_moves_that_week_only(pointers: Pointers) -> None:
    pointers.put("curate", WEEK, "weekly", 0, NEW)
    pointers.put("curate", OLDER_WEEK, "backfill", 0, OLD)
    assert found(pointers.latest("curate", WEEK)) == NEW
    assert found(pointers.latest("curate", OLDER_WEEK)) == OLD


def test_writing_the_same_again_changes_nothing(pointers: Pointers, database: Database) -> None:
    for _ in range(3):
        pointers.put("curate", WEEK, "run", 0, OLD)
    assert rows_in(database) == 1


def test_a_content_that_comes_back_is_the_newest_again(pointers: Pointers, database: Database) -> None:
    for digest in (OLD, NEW, OLD):
        pointers.put("curate", WEEK, "run", 0, digest)
    assert found(pointers.latest("curate", WEEK)) == OLD
    assert rows_in(database) == 3


def put_many(url: str, run_id: str) -> None:
    with closing(Database.open(url)) as database:
        for number in range(20):
            Pointers(database).put("curate", str(number), "shared", 0, OLD)
            Pointers(database).put("curate", str(number), run_id, 0, NEW)


def test_concurrent_writers_lose_no_row_and_add_none(database_url: str, database: Database) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        list(pool.map(put_many, [database_url] * 3, ["one", "two", "three"]))
    assert rows_in(database) == 20 * (1 + 3)


def test_what_is_usable_is_what_is_found(pointers: Pointers) -> None:
    pointers.put("curate", WEEK, "parent", 0, OLD)
    pointers.put("curate", WEEK, "stranger", 0, NEW)
    assert found(pointers.usable("curate", WEEK, ["mine", "parent"])) == OLD
    assert found(pointers.usable("curate", WEEK, ["mine"])) == NEW
    assert pointers.usable("curate", OLDER_WEEK, ["mine"]) is None


def test_a_quarantine_that_is_set_between_two_inputs_is_seen_by_the_second(
    pointers: Pointers, database: Database
) -> None:
    quarantine = Quarantine(database)
    pointers.put("curate", WEEK, "run", 0, OLD)
    assert found(pointers.usable("curate", WEEK, ["run"])) == OLD
    quarantine.mark(OLD, OTHER, "poisoned rows")
    with pytest.raises(QuarantinedError, match="poisoned rows"):
        pointers.usable("curate", WEEK, ["run"])
    quarantine.lift(OLD, NEW, "cleaned")
    assert found(pointers.usable("curate", WEEK, ["run"])) == OLD


def test_no_older_artifact_stands_in_for_one_under_quarantine(pointers: Pointers, database: Database) -> None:
    pointers.put("curate", WEEK, "run", 0, OLD)
    pointers.put("curate", WEEK, "run", 1, NEW)
    Quarantine(database).mark(NEW, OTHER, "poisoned rows")
    with pytest.raises(QuarantinedError):
        pointers.usable("curate", WEEK, ["run"])
