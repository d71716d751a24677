"""kill -9 of a writer: nothing lost, nothing twice, and the chain verifies."""

import time
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pytest

from ftpipeline.store.database import Database
from ftpipeline_tests.faults.kill import killed_at, write_points
from ftpipeline_tests.ledger.kill_work import URL, acknowledged, append_and_consume, append_for_ever
from ftpipeline_tests.ledger.tamper import TABLES, without_triggers
from ftpipeline_tests.ledger.world import World, kinds, metrics

WHOLE = [
    ["job_opened"],
    ["job_opened", "metrics", "metrics", "checkpoint_saved"],
    ["job_opened", "metrics", "metrics", "checkpoint_saved", "checkpoint_consumed"],
    ["job_opened", "metrics", "metrics", "checkpoint_saved", "checkpoint_consumed", "metrics"],
]
"""What may stand there: whole appends only."""


def prepared(folder: Path, database: Database, url: str) -> World:
    """Return a world in which `a` has saved a checkpoint and `b` has begun."""
    folder.mkdir(parents=True)
    world = World.at(folder, database)
    world.save(world.open("a"), 10)
    world.open("b")
    (folder / URL).write_text(url)
    return world


def check_sound(world: World) -> list[str]:
    """Check the chain of `b`, let another one go on with it, and return what stood there."""
    found = [str(kind) for kind in kinds(world.another().events("b"))]
    signed = [head.seq for head in world.another().signed_heads("b")]
    assert signed == [seq for seq, kind in enumerate(found) if kind == "checkpoint_saved"]
    heir = world.another().seize("b", "heir", 600)
    heir.append([metrics(100)])
    assert world.another().verify("b").seq == len(found)
    return found


def test_a_writer_that_is_killed_at_any_write_point_leaves_whole_appends(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    prepared(tmp_path / "count" / "home", database, database_url)
    points = write_points(append_and_consume, tmp_path / "count" / "home")
    assert points > 8
    for point in range(1, points + 1):
        emptied(database)
        world = prepared(tmp_path / str(point) / "home", database, database_url)
        assert killed_at(point, append_and_consume, tmp_path / str(point) / "home")
        said = acknowledged(tmp_path / str(point) / "home")
        found = check_sound(world)
        assert found in WHOLE
        assert WHOLE.index(found) - len(said) in (0, 1)


def emptied(database: Database) -> None:
    """Empty the ledger, past its triggers."""
    with without_triggers(database) as connection:
        for table in (*TABLES, "leases"):
            connection.exec_driver_sql(f"DELETE FROM {table}")


@pytest.mark.parametrize("seed", range(5))
def test_a_writer_that_is_killed_at_any_time_lost_and_doubled_nothing(
    database: Database, database_url: str, tmp_path: Path, seed: int
) -> None:
    world = prepared(tmp_path / "home", database, database_url)
    process = get_context("forkserver").Process(target=append_for_ever, args=(tmp_path / "home",))
    process.start()
    while not acknowledged(tmp_path / "home"):
        assert process.is_alive()
        time.sleep(0.01)
    time.sleep(Random(seed).uniform(0, 0.2))
    process.kill()
    process.join()
    said = acknowledged(tmp_path / "home")
    steps = [event.step for event in world.another().events("b")[1:]]
    check_sound(world)
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) - 2 * len(said) in (0, 2)
