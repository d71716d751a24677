import pytest

from ftpipeline.errors import StaleGenerationError
from ftpipeline.registry.pointers import read_pointers, swap
from ftpipeline.registry.stages import Stage
from ftpipeline.store.database import Database
from ftpipeline_tests.registry.world import NAME, World


def test_a_pointer_that_was_moved_since_it_was_read_is_not_moved_again(world: World, database: Database) -> None:
    entry, _ = world.register("a")
    with database.read() as connection:
        read = read_pointers(connection, NAME)[Stage.CANDIDATE]
    world.register("b")
    with pytest.raises(StaleGenerationError, match="generation 2, not 1"), database.write() as connection:
        swap(connection, read, entry.id)
    assert world.holds("candidate") == world.artifact("b")


def test_a_backfilled_week_never_becomes_the_candidate(world: World) -> None:
    world.register("new", week="2026-10-12")
    old, created = world.register("old", week="2026-10-05")
    assert created
    assert old.stage == Stage.CANDIDATE
    assert world.holds("candidate") == world.artifact("new")
    world.register("newer", week="2026-10-19")
    assert world.holds("candidate") == world.artifact("newer")
