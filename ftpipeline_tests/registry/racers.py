"""Processes that promote at the same moment, and one that reads all the while."""

import multiprocessing
import time
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

from sqlalchemy import select

from ftpipeline.errors import StaleGenerationError
from ftpipeline.registry.pointers import read_pointers
from ftpipeline.registry.stages import Stage
from ftpipeline.store.database import Database
from ftpipeline.store.tables import registry_entries
from ftpipeline_tests.registry.world import NAME, World

_PATIENCE_S = 60  # for the others to arrive; a racer that died breaks the barrier for all
_BETWEEN_LOOKS_S = 0.005


@dataclass(frozen=True)
class Outcome:
    """What one racer met in one round: the generation it won, or the one that it was told stands."""

    racer: int
    round: int
    won: bool
    generation: int


@dataclass(frozen=True)
class Seen:
    """What the reader saw: how often it looked, the generations of production, and states that must never be."""

    looks: int
    generations: tuple[int, ...]
    wrong: tuple[str, ...]


def race(url: str, store: Path, racers: int, rounds: int) -> tuple[list[Outcome], Seen]:
    """Let all racers promote a candidate of their own to shadow at once, `rounds` times; winners go to production."""
    context = multiprocessing.get_context("spawn")
    barrier, outcomes = context.Barrier(racers), context.Queue()
    done, seen = context.Event(), context.Queue()
    processes = [
        context.Process(target=_run, args=(url, store, racer, rounds, barrier, outcomes)) for racer in range(racers)
    ]
    reader = context.Process(target=_watch, args=(url, done, seen))
    for process in [reader, *processes]:
        process.start()
    met = [outcome for _ in processes for outcome in outcomes.get(timeout=(racers * rounds / 4) + 2 * _PATIENCE_S)]
    done.set()
    watched: Seen = seen.get(timeout=_PATIENCE_S)
    for process in [reader, *processes]:
        process.join()
    return met, watched


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


def _watch(url: str, done: Event, seen: Any) -> None:
    """Look at production until everybody is done; once there was one, there must be exactly one at every look."""
    looks, generations, wrong = 0, [0], []
    in_production = select(registry_entries.c.artifact).where(
        registry_entries.c.name == NAME, registry_entries.c.stage == Stage.PRODUCTION
    )
    with closing(Database.open(url)) as database:
        while looks == 0 or not done.is_set():
            with database.read() as connection:
                pointer = read_pointers(connection, NAME)[Stage.PRODUCTION]
                standing = connection.scalars(in_production).all()
            looks += 1
            if standing != ([pointer.digest] if pointer.generation > 0 else []):
                wrong.append(f"generation {pointer.generation} holds {pointer.digest}, in production are {standing}")
            if pointer.generation != generations[-1]:
                generations.append(pointer.generation)
            time.sleep(_BETWEEN_LOOKS_S)
    seen.put(Seen(looks, tuple(generations), tuple(wrong)))
