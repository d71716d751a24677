"""The closure of taint in time: equal to brute force, whichever engine computes it."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import InputError
from ftpipeline.guard.bulk import CLEAN, ConsumptionIndex, encode
from ftpipeline.guard.closure import Taint, close
from ftpipeline.guard.lineage import Edge, EdgeKind, Position
from ftpipeline_tests.guard.fleets import earliest_by_brute_force, fleet

GRAPHS = 3000

names = st.sampled_from("ABCDEF")
positions = st.builds(Position, st.integers(1, 2), st.integers(0, 9))
edges_of = st.lists(st.builds(Edge, names, positions, names, positions, st.sampled_from(EdgeKind)), max_size=25)
seeds_of = st.dictionaries(names, positions, min_size=1, max_size=3)


def times(taints: dict[str, Taint]) -> dict[str, Position]:
    return {job: taint.since for job, taint in taints.items()}


def in_bulk(edges: Sequence[Edge], seeds: dict[str, Position]) -> dict[str, Position]:
    jobs = sorted({job for edge in edges for job in (edge.producer, edge.consumer)} | seeds.keys())
    number = {job: index for index, job in enumerate(jobs)}

    def numbers(of: Sequence[str]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.array([number[job] for job in of], dtype=np.int64)

    def encoded(of: Sequence[Position | None]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        pairs = np.array([position or (0, 0) for position in of], dtype=np.int64).reshape(-1, 2)
        return encode(pairs[:, 0], pairs[:, 1])

    index = ConsumptionIndex(
        numbers([edge.producer for edge in edges]),
        encoded([edge.produced_at for edge in edges]),
        numbers([edge.consumer for edge in edges]),
        encoded([edge.consumed_at for edge in edges]),
        len(jobs),
    )
    earliest = index.trace(numbers(list(seeds)), encoded(list(seeds.values())))
    return {job: Position(*divmod(int(earliest[at]), 2**40)) for job, at in number.items() if earliest[at] < CLEAN}


def test_the_closure_equals_brute_force_on_thousands_of_temporal_graphs() -> None:
    cyclic = tainted = 0
    for seed in range(GRAPHS):
        world = fleet(seed)
        seeds = {world.incident.job_id: world.incident.begins}
        taints = close(world.edges, seeds)
        expected = earliest_by_brute_force(world.edges, seeds)
        assert times(taints) == expected, seed
        tainted += len(expected) > 1
        cyclic += any(edge.consumer == world.incident.job_id for taint in taints.values() for edge in taint.path())
        if seed % 10 == 0:
            assert in_bulk(world.edges, seeds) == expected, seed
    assert tainted > GRAPHS // 2
    assert cyclic > GRAPHS // 50  # the divergence came back to its source, so that cycles really were among them


@given(edges_of, seeds_of)
def test_both_engines_agree_with_brute_force(edges: list[Edge], seeds: dict[str, Position]) -> None:
    expected = earliest_by_brute_force(edges, seeds)
    assert times(close(edges, seeds)) == expected
    assert in_bulk(edges, seeds) == expected


@given(edges_of, seeds_of, st.randoms(use_true_random=False))
def test_order_and_duplicates_do_not_matter_not_even_for_the_paths(
    edges: list[Edge], seeds: dict[str, Position], random: Random
) -> None:
    mixed = edges + edges[::2]
    random.shuffle(mixed)
    assert close(mixed, dict(reversed(seeds.items()))) == close(edges, seeds)


@given(edges_of, seeds_of, st.integers(1, 5))
def test_an_earlier_seed_taints_a_superset_and_no_job_later(
    edges: list[Edge], seeds: dict[str, Position], steps: int
) -> None:
    earlier = {job: Position(since.attempt, since.step - steps) for job, since in seeds.items()}
    late, early = times(close(edges, seeds)), times(close(edges, earlier))
    assert late.keys() <= early.keys()
    assert all(early[job] <= late[job] for job in late)


@given(edges_of, edges_of, seeds_of)
def test_an_added_edge_never_lowers_the_set(edges: list[Edge], more: list[Edge], seeds: dict[str, Position]) -> None:
    few, many = times(close(edges, seeds)), times(close(edges + more, seeds))
    assert few.keys() <= many.keys()
    assert all(many[job] <= few[job] for job in few)


@given(edges_of, seeds_of)
def test_several_seeds_are_the_minimum_of_each(edges: list[Edge], seeds: dict[str, Position]) -> None:
    alone = [times(close(edges, {job: since})) for job, since in seeds.items()]
    together = times(close(edges, seeds))
    assert together == {
        job: min(found[job] for found in alone if job in found) for job in {job for found in alone for job in found}
    }


@given(edges_of, seeds_of)
def test_every_taint_has_a_path_in_time_from_a_seed(edges: list[Edge], seeds: dict[str, Position]) -> None:
    for job, taint in close(edges, seeds).items():
        path = taint.path()
        at, since = (path[0].producer, seeds[path[0].producer]) if path else (job, seeds[job])
        for edge in path:
            assert edge in edges
            assert edge.producer == at
            assert edge.produced_at is not None
            assert edge.consumed_at is not None
            assert edge.produced_at >= since
            at, since = edge.consumer, edge.consumed_at
        assert (at, since) == (job, taint.since)


@given(edges_of, seeds_of)
def test_no_edge_is_left_that_could_still_fire_and_one_hop_is_a_subset(
    edges: list[Edge], seeds: dict[str, Position]
) -> None:
    found = times(close(edges, seeds))
    for edge in edges:
        assert edge.produced_at is not None
        assert edge.consumed_at is not None
        if edge.producer in found and edge.produced_at >= found[edge.producer]:
            assert found[edge.consumer] <= edge.consumed_at
        if edge.producer in seeds and edge.produced_at >= seeds[edge.producer]:
            assert edge.consumer in found


def test_a_job_may_taint_itself_earlier_through_another() -> None:
    edges = [
        Edge("A", Position(1, 50), "B", Position(1, 10)),
        Edge("B", Position(1, 20), "A", Position(1, 30)),
        Edge("A", Position(1, 35), "C", Position(1, 1)),
    ]
    taints = close(edges, {"A": Position(1, 40)})
    assert times(taints) == {"A": Position(1, 30), "B": Position(1, 10), "C": Position(1, 1)}
    assert [edge.producer for edge in taints["C"].path()] == ["A", "B", "A"]


def test_a_chain_of_many_jobs_is_followed_to_its_end() -> None:
    chain = [Edge(f"{number}", Position(1, 5), f"{number + 1}", Position(1, 5)) for number in range(5000)]
    taints = close(chain, {"0": Position(1, 5)})
    assert len(taints["5000"].path()) == 5000


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        (([0], [0], [1, 1], [0]), "one row an edge"),
        (([0], [0], [2], [0]), "consumer numbers lie outside of 0 to 1"),
        (([-1], [0], [1], [0]), "producer numbers lie outside"),
        (([0], [-1], [1], [0]), "use encode"),
    ],
)
def test_arrays_that_are_no_consumptions_are_refused(arrays: tuple[list[int], ...], problem: str) -> None:
    producer, produced_at, consumer, consumed_at = (np.array(array, dtype=np.int64) for array in arrays)
    with pytest.raises(InputError, match=problem):
        ConsumptionIndex(producer, produced_at, consumer, consumed_at, jobs=2)


def test_no_consumptions_taint_the_seeds_alone() -> None:
    assert in_bulk([], {"A": Position(1, 3)}) == {"A": Position(1, 3)}
