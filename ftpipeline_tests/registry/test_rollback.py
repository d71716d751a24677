import pytest

from ftpipeline.errors import CorruptArtifactError, StaleGenerationError, TransitionError, UnknownNameError
from ftpipeline.registry.stages import Stage
from ftpipeline_tests.registry.world import NAME, WHO, World


def test_a_rollback_returns_to_the_production_before(world: World) -> None:
    world.release("a")
    world.release("b")
    moved = world.registry.rollback(NAME, **WHO)
    assert (moved.digest, moved.generation) == (world.artifact("a"), 3)
    assert world.registry.resolve(NAME, "production") == moved
    assert (world.stage("a"), world.stage("b")) == (Stage.PRODUCTION, Stage.RETIRED)


def test_a_second_rollback_goes_further_back_and_not_forward(world: World) -> None:
    for label in ("a", "b", "c"):
        world.release(label)
    for expected in ("b", "a"):
        assert world.registry.rollback(NAME, **WHO).digest == world.artifact(expected)
    with pytest.raises(TransitionError, match="no earlier production"):
        world.registry.rollback(NAME, **WHO)
    world.release("d")
    assert world.registry.rollback(NAME, **WHO).digest == world.artifact("a")


def test_a_first_production_has_nothing_to_return_to(world: World) -> None:
    world.register("a")
    with pytest.raises(TransitionError, match="no earlier production"):
        world.registry.rollback(NAME, **WHO)
    world.promote("a", "production")
    with pytest.raises(TransitionError, match="no earlier production"):
        world.registry.rollback(NAME, **WHO)


def test_a_rollback_to_missing_bytes_leaves_production_alone(world: World) -> None:
    world.release("a")
    world.release("b")
    standing, history = world.registry.resolve(NAME, "production"), world.registry.history(NAME)
    world.damage("a")
    with pytest.raises(CorruptArtifactError):
        world.registry.rollback(NAME, **WHO)
    assert world.registry.resolve(NAME, "production") == standing
    assert world.registry.history(NAME) == history


def test_a_rollback_from_an_older_generation_is_refused(world: World) -> None:
    world.release("a")
    world.release("b")
    with pytest.raises(StaleGenerationError, match="generation 2, not 1"):
        world.registry.rollback(NAME, expect=1, **WHO)
    assert world.registry.rollback(NAME, expect=2, **WHO).generation == 3


def test_what_resolves_verifies(world: World) -> None:
    world.release("a")
    world.damage("a")
    with pytest.raises(CorruptArtifactError):
        world.registry.resolve(NAME, "production")


@pytest.mark.parametrize("stage", ["shadow", "retired", "rejected", "staging"])
def test_a_stage_that_holds_no_single_artifact_does_not_resolve(world: World, stage: str) -> None:
    world.release("a")
    with pytest.raises(UnknownNameError):
        world.registry.resolve(NAME, stage)


def test_a_pin_is_written_once_and_outlives_production(world: World) -> None:
    empty = world.registry.pin("run-1", NAME)
    assert (empty.digest, empty.generation) == (None, 0)
    world.release("a")
    assert world.registry.pin("run-1", NAME) == empty
    first = world.registry.pin("run-2", NAME)
    assert (first.digest, first.generation) == (world.artifact("a"), 1)
    world.release("b")
    assert world.registry.pin("run-2", NAME) == first
    assert world.registry.pin("run-2", "another-name").digest is None
    assert world.registry.pin("run-3", NAME).digest == world.artifact("b")
