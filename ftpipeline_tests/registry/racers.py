"""Processes that promote at the same moment."""

import multiprocessing
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from ftpipeline.errors import StaleGenerationError
from ftpipeline.store.database import Database
from ftpipeline_tests.registry.world import World

_PATIENCE_S = 60  # for the others to arrive; a racer that died breaks the barrier for all


@dataclass(frozen=True)
class Outcome:
    """What one racer met in one round: the generation it won, or the one that it was told stands."""

    racer: int
    round: int
    won: bool
    generation: int


def race(url: str, store: Path, racers: int, rounds: int) -> list[Outcome]:
    """Let all racers promote a candidate of their own to shadow at once, `rounds` times; winners go to production."""
    context = multiprocessing.get_context("spawn")
    barrier, outcomes = context.Barrier(racers), context.Queue()
    processes = [
        context.Process(target=_run, args=(url, store, racer, rounds, barrier, outcomes)) for racer in range(racers)
    ]
    for process in processes:
        process.start()
    met = [outcome for _ in processes for outcome in outcomes.get(timeout=2 * _PATIENCE_S)]
    for process in processes:
        process.join()
    return met


def _run(url: str, store: Path, racer: int, rounds: int, barrier: Barrier, outcomes: Any) -> None:
    met: list[Outcome] = []
    try:
        with closing(Database.open(url)) as database:
            world = World(database, store)
            for number in range(rounds):
                met.append(_round(world, racer, number, barrier))
    finally:
        outcomes.put(met)


def _round(world: World, racer: int, number: int, barrier: Barrier) -> Outcome:
    label = f"{number}-{racer}"
    world.register(label)
    expect = world.generation("shadow")
    barrier.wait(_PATIENCE_S)
    try:
        generation = world.promote(label, "shadow", expect).generation
    except StaleGenerationError as stale:
        outcome = Outcome(racer, number, won=False, generation=stale.actual)
    else:
        outcome = Outcome(racer, number, won=True, generation=generation)
    barrier.wait(_PATIENCE_S)
    if outcome.won:
        world.promote(label, "canary")
        world.promote(label, "production")
    barrier.wait(_PATIENCE_S)
    return outcome
