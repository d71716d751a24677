from collections import Counter
from pathlib import Path

from ftpipeline.registry.stages import Stage
from ftpipeline.store.database import Database
from ftpipeline_tests.registry.racers import race
from ftpipeline_tests.registry.world import NAME, World

RACERS, ROUNDS = 4, 25


def test_of_promotions_at_once_one_wins_and_none_is_lost(database_url: str, database: Database, tmp_path: Path) -> None:
    outcomes = race(database_url, tmp_path / "store", RACERS, ROUNDS)
    assert len(outcomes) == RACERS * ROUNDS
    winners = sorted((outcome.round, outcome.generation) for outcome in outcomes if outcome.won)
    assert winners == [(number, 2 * number + 1) for number in range(ROUNDS)]  # taken, and left for canary
    told = {(outcome.round, outcome.generation) for outcome in outcomes if not outcome.won}
    assert told == set(winners)

    world = World(database, tmp_path / "store")
    generations = [row.generation for row in world.registry.history(NAME) if row.to_stage == Stage.PRODUCTION]
    assert generations == list(range(1, ROUNDS + 1))
    stages = Counter(entry.stage for entry in world.registry.entries(NAME))
    assert stages == {Stage.PRODUCTION: 1, Stage.RETIRED: ROUNDS - 1, Stage.CANDIDATE: (RACERS - 1) * ROUNDS}
    assert world.registry.resolve(NAME, "production").generation == ROUNDS
