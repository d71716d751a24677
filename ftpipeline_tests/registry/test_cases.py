"""The shared cases of registries: transitions, a dangling digest, a race, and what identifies a version."""

import csv
import json
from collections.abc import Callable
from typing import Any

import pytest

from ftpipeline.digest import of_bytes
from ftpipeline.errors import (
    CorruptArtifactError,
    FtpipelineError,
    ProtectedArtifactError,
    StaleGenerationError,
    UnknownNameError,
)
from ftpipeline.registry.stages import Stage
from ftpipeline.store.quarantine import Quarantine
from ftpipeline_tests.registry.world import NAME, WHO, World
from ftpipeline_tests.shared import shared


def case(name: str) -> Any:
    return json.loads(shared("cases", "f", name).read_text("utf-8"))


def brought_to(world: World, stage: str, *, passed: bool) -> None:
    """Register the artifact `x` beside a production, and bring it to a stage by the ways that are open."""
    world.release("a")
    if stage == "retired":
        world.release("x")
        world.release("b")
        return
    world.register("x", None if passed else "fail")
    for to in ("shadow", "canary")[: ("candidate", "shadow", "canary").index(stage)]:
        world.promote("x", to)


def test_every_transition_of_the_table_is_answered_as_it_says(world: World) -> None:
    with shared("cases", "f", "stage_transitions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 6
    for number, row in enumerate(rows):
        world.name = f"name-{number}"
        brought_to(world, row["from"], passed=row["gate_passed"] == "true")
        quarantine = Quarantine(world.database)
        if row["quarantined"] == "true":
            quarantine.mark(world.artifact("x"), of_bytes(b"receipt"), "its job diverged")
        assert is_moved(world, row["from"], row["to"]) is row["expected"].startswith("ok"), row
        if row["quarantined"] == "true":
            quarantine.lift(world.artifact("x"), of_bytes(b"lifted"), "for the other rows")


def is_moved(world: World, origin: str, to: str) -> bool:
    try:
        if origin == "retired":
            world.registry.rollback(world.name, **WHO)
        else:
            world.promote("x", to)
    except FtpipelineError:
        return False
    return world.stage("x") == to


def test_a_rollback_to_a_missing_blob_and_the_deletion_of_what_serves_are_refused(world: World) -> None:
    expected = case("registry_dangling.json")["expected"]
    assert expected == ["refused: blob missing, production unchanged", "refused: version is aliased"]
    world.release("v6")
    world.release("v7")
    world.damage("v6")
    with pytest.raises(CorruptArtifactError):
        world.registry.rollback(NAME, **WHO)
    with pytest.raises(ProtectedArtifactError, match=f"{NAME}@production holds"):
        world.registry.delete(NAME, world.artifact("v7"), **WHO)
    assert world.holds("production") == world.artifact("v7")


def test_of_two_who_read_the_same_production_one_wins_and_the_other_is_told(world: World) -> None:
    expected = case("registry_race.json")["expected"]
    assert expected["exactly_one_wins"]
    world.release("v7")
    for label in ("v8", "v9"):
        world.register(label)
    read, rows = world.generation("shadow"), len(world.registry.history(NAME))
    world.promote("v8", "shadow", read)
    with pytest.raises(StaleGenerationError, match=str(world.artifact("v8"))):
        world.promote("v9", "shadow", read)
    assert len(world.registry.history(NAME)) == rows + expected["history_rows_added"]


def test_a_version_is_its_digest_and_no_number_in_any_spelling(world: World) -> None:
    assert case("registry_types.json")["expected"][1] == "unknown version"
    world.release("a")
    asks: list[Callable[[str], object]] = [
        lambda text: world.registry.delete(NAME, text, **WHO),
        lambda text: world.registry.promote(NAME, text, "shadow", expect=0, **WHO),
    ]
    for ask in asks:
        for text in ("1", "01", "3", "03"):
            with pytest.raises(UnknownNameError):
                ask(text)
    assert world.stage("a") == Stage.PRODUCTION
