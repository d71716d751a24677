from collections import Counter
from pathlib import Path

import pytest

from ftpipeline.registry.stages import Stage
from ftpipeline.store.database import Database
from ftpipeline_tests.registry.racers import race
from ftpipeline_tests.registry.world import NAME, World


@pytest.mark.parametrize(
    ("racers", "rounds"),
    [(4, 10), pytest.param(8, 250, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
def test_of_promotions_at_once_one_wins_none_is_lost_and_a_reader_always_sees_one_production(
    database_url: str, database: Database, tmp_path: Path, racers: int, rounds: int
) -> None:
    outcomes, seen = race(database_url, tmp_path / "store", racers, rounds)
    assert len(outcomes) == racers * rounds
    winners = sorted((outcome.round, outcome.generation) for outcome in outcomes if outcome.won)
    assert winners == [(number, 2 * number + 1) for number in range(rounds)]  # taken, and left for canary
    told = {(outcome.round, outcome.generation) for outcome in outcomes if not outcome.won}
    assert told == set(winners)

    assert seen.wrong == ()
    assert seen.looks > 0
    assert list(seen.generations) == sorted(set(seen.generations))
    assert seen.generations[-1] <= rounds

    world = World(database, tmp_path / "store")
    generations = [row.generation for row in world.registry.history(NAME) if row.to_stage == Stage.PRODUCTION]
    assert generations == list(range(1, rounds + 1))
    stages = Counter(entry.stage for entry in world.registry.entries(NAME))
    assert stages == {Stage.PRODUCTION: 1, Stage.RETIRED: rounds - 1, Stage.CANDIDATE: (racers - 1) * rounds}
    assert world.registry.resolve(NAME, "production").generation == rounds
