"""Rows that share a key are never apart, and the choice of groups is a function of their names."""

from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.groups import components, draw

keys = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=3), max_size=12)
sizes = st.lists(st.integers(1, 20), min_size=1, max_size=15)


@given(keys)
def test_components_are_the_closure_of_shared_keys(rows: list[list[str]]) -> None:
    reachable = {index: {index} for index in range(len(rows))}
    for _ in rows:
        for one, other in combinations(range(len(rows)), 2):
            if set(rows[one]) & set(rows[other]):
                reachable[one] |= reachable[other]
                reachable[other] |= reachable[one]
    assert components(rows) == sorted({tuple(sorted(group)): sorted(group) for group in reachable.values()}.values())


def test_rows_without_a_key_are_strangers() -> None:
    assert components([[], [], ["a"], [], ["a"]]) == [[0], [1], [2, 4], [3]]


@given(sizes, st.integers(0, 60), st.integers(0, 5))
def test_the_draw_stays_within_what_is_wanted_or_is_the_smallest_group(
    counts: list[int], wanted: int, seed: int
) -> None:
    chosen = draw([f"g{n}" for n in range(len(counts))], counts, wanted, seed)
    drawn = sum(counts[index] for index in chosen)
    assert chosen
    assert drawn <= wanted or (len(chosen) == 1 and drawn == min(counts))
    left = set(range(len(counts))) - chosen
    assert all(counts[index] + drawn > wanted for index in left)


@given(sizes, st.randoms(use_true_random=False))
def test_the_draw_depends_on_names_and_not_on_order(counts: list[int], random: Any) -> None:
    names = [f"g{n}" for n in range(len(counts))]
    order = random.sample(range(len(counts)), len(counts))
    shuffled = draw([names[index] for index in order], [counts[index] for index in order], 20, 0)
    assert {order[index] for index in shuffled} == draw(names, counts, 20, 0)


def test_another_seed_draws_other_groups() -> None:
    names, counts = [f"g{n}" for n in range(50)], [1] * 50
    assert draw(names, counts, 10, 0) != draw(names, counts, 10, 1)
