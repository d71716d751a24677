"""Moving a stage pointer, and resolving with a warm client: p99 of the wall time, in a registry with a year's entries.

An artifact is as large as a quantised MiniLM. The database is SQLite with a commit on disk for every move.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _measure import Figure, arguments, at_most, report

from ftpipeline.registry import Client
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.registry.world import NAME, WHO, World

_MIB = 1 << 20
_STAGES = ("shadow", "canary", "production")


def main() -> None:
    """Measure moves, then resolves."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--entries", type=int, default=52, help="artifacts that are promoted through every stage")
    parser.add_argument("--resolves", type=int, default=2000, help="times that a warm client resolves")
    parser.add_argument("--mib", type=int, default=24, help="size of the artifact in production")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, closing(Home(Path(folder) / "home").open()) as store:
        world = World(store.database, store.home.store_root)
        world.release("first")
        moves = _moves(world, options.entries)
        _release_large(world, options.mib)
        cold, warm, busy = _resolves(store, options.resolves)
    report(
        [
            at_most(f"pointer move, {len(moves)} moves, p99", _p99(moves), 50, "ms"),
            Figure("pointer move, median", statistics.median(moves), "ms"),
            at_most(f"resolve, warm client, {len(warm)} calls, p99", _p99(warm), 5, "ms"),
            Figure("resolve, warm client, median", statistics.median(warm), "ms"),
            Figure("resolve, warm client, CPU time, p99", _p99(busy), "CPU-ms"),
            Figure(f"resolve, first call of a client, {options.mib} MiB", cold, "ms"),
        ],
        options.json,
    )


def _moves(world: World, entries: int) -> list[float]:
    """Return the milliseconds of every promotion of `entries` artifacts, and of a rollback."""
    taken: list[float] = []
    for number in range(entries):
        world.register(f"model {number}")
        for stage in _STAGES:
            move = partial(world.promote, f"model {number}", stage, world.generation(stage))
            taken.append(_milliseconds(move))
    taken.append(_milliseconds(lambda: world.registry.rollback(NAME, **WHO)))
    return taken


def _release_large(world: World, mib: int) -> None:
    """Bring an artifact of a real size to production."""
    artifact = world.tree("model.onnx", os.urandom(mib * _MIB))
    world.adopt("large", artifact)
    world.release("large")


def _resolves(store: Store, calls: int) -> tuple[float, list[float], list[float]]:
    """Return the milliseconds of a client's first call; of each of the calls after it; and of those, on the CPU."""
    warm: list[float] = []
    busy: list[float] = []
    with Client(store.home.root) as client:
        cold = _milliseconds(lambda: client.resolve(NAME, "production"))
        for _ in range(calls):
            start = time.thread_time()
            warm.append(_milliseconds(lambda: client.resolve(NAME, "production")))
            busy.append(1000 * (time.thread_time() - start))
    return cold, warm, busy


def _milliseconds(what: Callable[[], object]) -> float:
    start = time.perf_counter()
    what()
    return 1000 * (time.perf_counter() - start)


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


if __name__ == "__main__":
    main()
