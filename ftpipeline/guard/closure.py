"""The closure of taint in time, with the path that explains each of its members.

`T[job]` is the earliest tainted position of a job. An edge fires when its producer was tainted by the time it produced:
`produced_at >= T[producer]`; then `T[consumer]` is at most `consumed_at`. `T` is the greatest solution.

Laws: the order of edges and duplicates do not matter; an earlier seed or one more edge never raises any `T`; the
closure of several seeds is the pointwise minimum of theirs; cycles end.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ftpipeline.guard.lineage import Edge, Position


@dataclass(frozen=True)
class Taint:
    """How a job came to be tainted.

    Attributes:
        since: its earliest tainted position.
        edge: the consumption that tainted it; None for a seed.
        cause: how the producer was tainted when that edge fired; None for a seed. A job may stand in a path twice.
    """

    since: Position
    edge: Edge | None = None
    cause: "Taint | None" = None

    def path(self) -> tuple[Edge, ...]:
        """Return the consumptions that lead from a seed here, in their order."""
        path: list[Edge] = []
        taint: Taint | None = self
        while taint is not None and taint.edge is not None:
            path.append(taint.edge)
            taint = taint.cause
        return tuple(reversed(path))


def close(edges: Iterable[Edge], seeds: Mapping[str, Position]) -> dict[str, Taint]:
    """Return the taint of every job that is reached, the seeds among them.

    Args:
        edges: consumptions; every position must be known.
        seeds: position from which on a job is tainted by itself.
    """
    waiting = _by_producer(edges)
    taints = {job: Taint(since) for job, since in sorted(seeds.items())}
    queue = deque(taints)
    while queue:
        producer = queue.popleft()
        cause, remaining = taints[producer], waiting.get(producer, [])
        while remaining and _known(remaining[-1].produced_at) >= cause.since:
            edge = remaining.pop()  # a lower T lets more edges fire, so one that has fired never does again
            known, since = taints.get(edge.consumer), _known(edge.consumed_at)
            if known is None or since < known.since:
                taints[edge.consumer] = Taint(since, edge, cause)
                queue.append(edge.consumer)
                cause = taints[producer]  # an edge to itself may have lowered it
    return taints


def _by_producer(edges: Iterable[Edge]) -> dict[str, list[Edge]]:
    """Return each producer's edges, the latest produced last; among equals the one with the least consumer first."""
    grouped: defaultdict[str, list[Edge]] = defaultdict(list)
    for edge in edges:
        grouped[edge.producer].append(edge)
    for own in grouped.values():
        own.sort(key=lambda edge: (_known(edge.produced_at), edge.consumer, _known(edge.consumed_at), edge.kind))
    return dict(grouped)


def _known(position: Position | None) -> Position:
    assert position is not None  # the caller has settled what is unknown
    return position
