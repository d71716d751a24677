"""Random fleets of jobs that consume each other's checkpoints, and an oracle that traces them by brute force."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from ftpipeline.guard.lineage import START, Edge, EdgeKind, Incident, Job, Position


@dataclass(frozen=True)
class Fleet:
    """A cut with one divergence in it."""

    jobs: tuple[Job, ...]
    edges: tuple[Edge, ...]
    incident: Incident


def fleet(seed: int) -> Fleet:
    """Return a fleet of 2 to 12 jobs and artifacts with up to 40 consumptions; cycles and retries are common."""
    random = Random(seed)
    names = [f"job{number}" for number in range(random.randint(2, 12))]
    artifacts = {name for name in names[1:] if random.random() < 0.15}
    edges = []
    for _ in range(random.randint(0, 40)):
        producer, consumer = random.choice(names), random.choice(names)
        made = START if producer in artifacts else _position(random)
        read = START if consumer in artifacts else _position(random)
        edges.append(Edge(producer, made, consumer, read, random.choice(list(EdgeKind))))
    jobs = [_job(random, name, name in artifacts) for name in names]
    onset = _position(random)
    last_good = Position(onset.attempt, onset.step - random.randint(1, 3)) if random.random() < 0.8 else None
    return Fleet(tuple(jobs), tuple(edges), Incident(names[0], onset, last_good))


def _position(random: Random) -> Position:
    return Position(random.randint(1, 3), random.randint(3, 12))


def _job(random: Random, name: str, is_artifact: bool) -> Job:
    kept = () if is_artifact else tuple(_position(random) for _ in range(random.randint(0, 4)))
    return Job(name, checkpoints=kept, running=random.random() < 0.5, is_artifact=is_artifact)


def earliest_by_brute_force(edges: Iterable[Edge], seeds: Mapping[str, Position]) -> dict[str, Position]:
    """Return the earliest tainted position of every tainted job.

    A job at a position is a node; it leads to the job's later positions and, along a consumption, to the consumer.
    """
    positions: defaultdict[str, set[Position]] = defaultdict(set)
    leads: defaultdict[tuple[str, Position], list[tuple[str, Position]]] = defaultdict(list)
    for job, since in seeds.items():
        positions[job].add(since)
    for edge in edges:
        assert edge.produced_at is not None
        assert edge.consumed_at is not None
        positions[edge.producer].add(edge.produced_at)
        positions[edge.consumer].add(edge.consumed_at)
        leads[edge.producer, edge.produced_at].append((edge.consumer, edge.consumed_at))
    for job, own in positions.items():
        ordered = sorted(own)
        for earlier, later in pairwise(ordered):
            leads[job, earlier].append((job, later))
    reached, waiting = set(seeds.items()), list(seeds.items())
    while waiting:
        for node in leads[waiting.pop()]:
            if node not in reached:
                reached.add(node)
                waiting.append(node)
    found: dict[str, Position] = {}
    for job, position in reached:
        found[job] = min(position, found.get(job, position))
    return found
