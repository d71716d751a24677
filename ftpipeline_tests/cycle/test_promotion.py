"""How far a candidate goes without a person."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.bindings import SUBPROCESS_LAUNCHER
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.promotion import advance
from ftpipeline.receipts import SigningKey
from ftpipeline.records import Facts
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_world import Silent
from ftpipeline_tests.registry.world import WHO, World
from ftpipeline_tests.tiny_pipeline import build_tiny_pipeline, write_pipeline

NAME = "tiny"


class Policy:
    """A pipeline with a policy, and artifacts that are registered for it."""

    def __init__(self, file: Path, store: Store) -> None:
        self.world = World(store.database, store.home.store_root, NAME, SigningKey.of_home(store.home.root))
        self._file = file
        self._store = store

    def advance(self, label: str, automatic: str | None) -> Facts:
        write_pipeline(self._file, name=NAME, release={"automatic": automatic})
        cycle = Cycle(pipelines.load(self._file), self._store, Silent(), SUBPROCESS_LAUNCHER)
        return advance(cycle, self.world.registry.entry(NAME, self.world.artifact(label)))


@pytest.fixture
def policy(tmp_path: Path, home: Home) -> Iterator[Policy]:
    with closing(home.open()) as store:
        yield Policy(build_tiny_pipeline(tmp_path / "pipeline", name=NAME), store)


def test_a_first_release_waits_for_a_person(policy: Policy) -> None:
    policy.world.register("a")
    assert policy.advance("a", "production") == {"stage": "candidate", "promotion": "by hand"}


@pytest.mark.parametrize(
    ("automatic", "moves"),
    [
        (None, "by hand"),
        ("shadow", "shadow"),
        ("canary", "shadow, canary"),
        ("production", "shadow, canary, production"),
    ],
)
def test_a_passing_candidate_goes_as_far_as_the_file_says(policy: Policy, automatic: str | None, moves: str) -> None:
    policy.world.release("a")
    policy.world.register("b")
    stage = "candidate" if automatic is None else automatic
    assert policy.advance("b", automatic) == {"stage": stage, "promotion": moves}
    assert policy.world.stage("b") == stage
    again = policy.advance("b", automatic)
    assert (again["stage"], again["promotion"]) == (stage, "by hand")


def test_what_the_registry_refuses_is_said_and_left_to_a_person(policy: Policy) -> None:
    policy.world.release("a")
    policy.world.register("x")
    policy.world.promote("x", "shadow")
    policy.world.register("b")
    facts = policy.advance("b", "canary")
    assert (facts["stage"], facts["promotion"]) == ("candidate", "by hand")
    assert "promote or reject that one first" in facts["promotion_refused"]


def test_a_backfilled_week_and_a_rejection_go_nowhere(policy: Policy) -> None:
    policy.world.release("a")
    policy.world.register("new", week="2026-10-12")
    policy.world.register("old", week="2026-10-05")
    assert policy.advance("old", "production") == {"stage": "candidate", "promotion": "by hand"}
    policy.world.registry.reject(NAME, policy.world.artifact("new"), **WHO)
    assert policy.advance("new", "production") == {"stage": "rejected", "promotion": "by hand"}
