"""Tracing taint through 10^5, 10^6 and 10^7 consumptions, beside networkx and DuckDB at 10^5.

A one-shot trace sorts the consumptions and answers one question; a query asks again. All engines must agree.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from _measure import Figure, arguments, at_most, report
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ftpipeline.guard.bulk import CLEAN, ConsumptionIndex, encode
from ftpipeline.guard.closure import close
from ftpipeline.guard.lineage import Edge, Position

Ints = NDArray[np.int64]
_PEER_EDGES = 10**5
_TARGET_EDGES = 10**6
_PER_JOB = 20  # consumptions of a job
_ONSET = 1_000
_QUERY = """
with recursive t(j, te) using key (j) as (
    select 0::bigint, {onset}::bigint
    union
    select e.c, min(e.cp) from t join e on e.p = t.j and e.pp >= t.te
    left join recurring.t r on r.j = e.c where r.te is null or e.cp < r.te group by e.c
) select j, te from t
"""


@dataclass(frozen=True)
class Consumptions:
    """Random consumptions; positions are steps of up to a million, later ones likelier to be consumed later."""

    producer: Ints
    produced_at: Ints
    consumer: Ints
    consumed_at: Ints
    jobs: int

    @classmethod
    def random(cls, edges: int) -> "Consumptions":
        """Return `edges` consumptions among a twentieth as many jobs."""
        random = np.random.default_rng(edges)
        jobs = edges // _PER_JOB
        made = random.integers(0, 10**6, edges)
        read = made // 2 + random.integers(0, 10**6, edges)
        first = np.ones(edges, dtype=np.int64)
        return cls(
            random.integers(0, jobs, edges),
            encode(first, made),
            random.integers(0, jobs, edges),
            encode(first, read),
            jobs,
        )

    @property
    def onset(self) -> int:
        """The encoded onset of job 0, whose taint is traced."""
        return int(encode(np.array(1), np.array(_ONSET)))


def ours(given: Consumptions) -> Ints:
    """Trace with the arrays."""
    index = ConsumptionIndex(given.producer, given.produced_at, given.consumer, given.consumed_at, given.jobs)
    earliest: Ints = index.trace(np.array([0]), np.array([given.onset]))
    return earliest


def explained(given: Consumptions) -> Ints:
    """Trace with the engine that keeps the paths."""
    columns = (given.producer, given.produced_at, given.consumer, given.consumed_at)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    edges = [Edge(str(p), Position(0, pp), str(c), Position(0, cp)) for p, pp, c, cp in rows]
    taints = close(edges, {"0": Position(0, given.onset)})
    return _earliest(given, {int(job): taint.since.step for job, taint in taints.items()})


def networkx_descendants(given: Consumptions) -> Ints:
    """Trace with a graph whose nodes are jobs at positions."""
    import networkx

    graph = networkx.DiGraph()
    positions: dict[int, set[int]] = {0: {given.onset}}
    for p, pp, c, cp in _rows(given):
        graph.add_edge((p, pp), (c, cp))
        positions.setdefault(p, set()).add(pp)
        positions.setdefault(c, set()).add(cp)
    for job, own in positions.items():
        ordered = sorted(own)
        graph.add_node((job, ordered[0]))
        graph.add_edges_from(((job, a), (job, b)) for a, b in pairwise(ordered))
    earliest: dict[int, int] = {0: given.onset}
    for job, position in networkx.descendants(graph, (0, given.onset)):
        earliest[job] = min(position, earliest.get(job, position))
    return _earliest(given, earliest)


def duckdb_recursive(given: Consumptions) -> Ints:
    """Trace with a recursive query that keeps one row a job."""
    import duckdb
    import pyarrow

    columns = {"p": given.producer, "pp": given.produced_at, "c": given.consumer, "cp": given.consumed_at}
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("e", pyarrow.table(columns))
        rows = connection.sql(_QUERY.format(onset=given.onset)).fetchall()
    return _earliest(given, dict(rows))


def _rows(given: Consumptions) -> list[tuple[int, int, int, int]]:
    columns = (given.producer, given.produced_at, given.consumer, given.consumed_at)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _earliest(given: Consumptions, found: dict[int, int]) -> Ints:
    earliest = np.full(given.jobs, CLEAN, dtype=np.int64)
    earliest[list(found)] = list(found.values())
    return earliest


def timed(engine: Callable[[Consumptions], Ints], given: Consumptions, rounds: int = 3) -> tuple[float, Ints]:
    """Return the least seconds of some rounds, and the answer."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        answer = engine(given)
        seconds.append(time.perf_counter() - start)
    return min(seconds), answer


def peers() -> list[Figure]:
    """Compare the engines at 10^5 consumptions."""
    given = Consumptions.random(_PEER_EDGES)
    mine, answer = timed(ours, given)
    figures = [Figure("10^5 consumptions, arrays, one-shot", mine, "s")]
    for engine in (explained, duckdb_recursive, networkx_descendants):
        seconds, other = timed(engine, given, rounds=1)
        if not np.array_equal(answer, other):
            raise SystemExit(f"{engine.__name__} gives another answer than the arrays do")
        figures.append(Figure(f"10^5 consumptions, {engine.__name__}, one-shot", seconds, "s"))
    return [*figures, at_most("10^5 consumptions, arrays over networkx, ratio", mine / seconds, 0.01)]


def sizes(largest: int) -> list[Figure]:
    """Measure the arrays at sizes up to `largest`."""
    figures = []
    for edges in (size for size in (_TARGET_EDGES, 10**7) if size <= largest):
        given = Consumptions.random(edges)
        seconds, answer = timed(ours, given, rounds=3 if edges == _TARGET_EDGES else 1)
        name = f"10^{len(str(edges)) - 1} consumptions, arrays, one-shot"
        figures.append(at_most(name, seconds, 1.0, "s") if edges == _TARGET_EDGES else Figure(name, seconds, "s"))
        figures.append(Figure(f"{name.partition(',')[0]}, jobs tainted", int((answer < CLEAN).sum()), "jobs"))
    return figures


def main() -> None:
    """Measure all of it."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--largest", type=int, default=10**7, help="most consumptions")
    options = parser.parse_args()
    report([*peers(), *sizes(options.largest)], options.json)


if __name__ == "__main__":
    main()
