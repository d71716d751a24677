from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError

from ftpipeline.errors import InputError, ProtectedArtifactError, TransitionError
from ftpipeline.registry.registry import Registry
from ftpipeline.registry.stages import Stage
from ftpipeline.store.tables import registry_entries
from ftpipeline_tests.registry.world import NAME, WHO, World

CYCLE = timedelta(days=7)


def after(world: World, time: timedelta) -> Registry:
    """Return the registry as it is some time later."""
    return world.opened(clock=lambda: datetime.now(UTC) + time)


def test_what_a_stage_holds_is_not_deleted(world: World) -> None:
    world.release("a")
    for label, stage in (("b", "shadow"), ("c", "candidate")):
        world.register(label)
        if stage == "shadow":
            world.promote(label, stage)
    for label, stage in (("a", "production"), ("b", "shadow"), ("c", "candidate")):
        with pytest.raises(ProtectedArtifactError, match=f"{NAME}@{stage} holds"):
            after(world, 10 * CYCLE).delete(NAME, world.artifact(label), **WHO)
        assert world.stage(label) == stage


def test_what_another_name_serves_is_not_deleted(world: World) -> None:
    world.register("a", "fail")
    other = World(world.database, world.store, name="another-name")
    other.release("a")
    with pytest.raises(ProtectedArtifactError, match="another-name@production holds"):
        world.registry.delete(NAME, world.artifact("a"), **WHO)


def test_a_candidate_that_was_overtaken_is_rejected_before_it_is_deleted(world: World) -> None:
    world.register("a")
    world.register("b")
    with pytest.raises(ProtectedArtifactError, match="only what is retired or rejected"):
        world.registry.delete(NAME, world.artifact("a"), **WHO)
    world.registry.reject(NAME, world.artifact("a"), **WHO)
    assert world.registry.delete(NAME, world.artifact("a"), **WHO).stage == Stage.DELETED


def test_the_production_before_is_kept_until_its_successor_has_served_a_full_traffic_cycle(world: World) -> None:
    world.release("a")
    world.release("b")
    with pytest.raises(ProtectedArtifactError, match="a rollback returns to"):
        after(world, CYCLE - timedelta(minutes=1)).delete(NAME, world.artifact("a"), **WHO)
    assert world.stage("a") == Stage.RETIRED
    assert after(world, CYCLE).delete(NAME, world.artifact("a"), **WHO).stage == Stage.DELETED
    with pytest.raises(TransitionError, match="no earlier production"):
        world.registry.rollback(NAME, **WHO)


def test_a_rollback_passes_over_what_was_deleted(world: World) -> None:
    for label in ("a", "b", "c"):
        world.release(label)
    after(world, CYCLE).delete(NAME, world.artifact("b"), **WHO)
    assert world.registry.rollback(NAME, **WHO).digest == world.artifact("a")


def test_the_traffic_cycle_starts_anew_with_every_move_of_production(world: World) -> None:
    for label in ("a", "b", "c"):
        world.release(label)
    later = after(world, CYCLE)
    later.rollback(NAME, **WHO)
    with pytest.raises(ProtectedArtifactError, match="a rollback returns to"):
        later.delete(NAME, world.artifact("a"), **WHO)
    assert later.delete(NAME, world.artifact("c"), **WHO).stage == Stage.DELETED


def test_what_is_deleted_stays_on_record_and_is_never_moved_again(world: World) -> None:
    world.register("a", "fail")
    deleted = world.registry.delete(NAME, world.artifact("a"), **WHO)
    last = world.registry.history(NAME)[-1]
    assert (last.from_stage, last.to_stage, last.reason) == (Stage.REJECTED, Stage.DELETED, WHO["reason"])
    assert world.registry.entry(NAME, world.artifact("a")) == deleted
    with pytest.raises(TransitionError, match="deleted may go to nothing"):
        world.promote("a", "shadow")
    with pytest.raises(ProtectedArtifactError):
        world.registry.delete(NAME, world.artifact("a"), **WHO)


@pytest.mark.parametrize("days", ["0", "soon", "-7", "nan"])
def test_a_traffic_cycle_that_is_no_time_is_refused(world: World, monkeypatch: pytest.MonkeyPatch, days: str) -> None:
    world.register("a", "fail")
    monkeypatch.setenv("FTPIPELINE_TRAFFIC_CYCLE_DAYS", days)
    with pytest.raises(InputError, match="no positive number of days"):
        world.registry.delete(NAME, world.artifact("a"), **WHO)
    assert world.stage("a") == Stage.REJECTED


def test_the_database_itself_keeps_an_entry_that_a_pointer_holds(world: World) -> None:
    world.release("a")
    with pytest.raises(IntegrityError), world.database.write() as connection:
        connection.execute(delete(registry_entries))
    assert world.holds("production") == world.artifact("a")
