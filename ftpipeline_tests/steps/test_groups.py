"""Rows that share a key are never apart, and the choice of groups is a function of their names."""

from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.groups import components, held_out

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


@given(sizes, st.floats(0.01, 0.99), st.integers(0, 5))
def test_some_groups_are_held_out_and_some_are_not(counts: list[int], fraction: float, seed: int) -> None:
    chosen = held_out([f"g{n}" for n in range(len(counts))], counts, fraction, seed)
    if len(counts) > 1:
        assert 0 < len(chosen) < len(counts)
    assert not any(2 * counts[index] > sum(counts) for index in chosen)


@given(sizes, st.randoms(use_true_random=False))
def test_the_choice_depends_on_names_and_not_on_order(counts: list[int], random: Any) -> None:
    names = [f"g{n}" for n in range(len(counts))]
    order = random.sample(range(len(counts)), len(counts))
    shuffled = held_out([names[index] for index in order], [counts[index] for index in order], 0.2, 0)
    assert {order[index] for index in shuffled} == held_out(names, counts, 0.2, 0)


@given(st.integers(40, 80), st.integers(0, 60), st.integers(0, 40), st.integers(0, 3))
def test_groups_that_come_or_go_move_no_other(count: int, added: int, dropped: int, seed: int) -> None:
    before = [f"g{n}" for n in range(count)]
    after = before[min(dropped, count - 20) :] + [f"h{n}" for n in range(added)]
    sides = [
        {names[index] for index in held_out(names, [1] * len(names), 0.3, seed)} & set(before) & set(after)
        for names in (before, after)
    ]
    assert sides[0] == sides[1]


def test_about_the_wanted_share_of_many_groups_is_held_out() -> None:
    names = [f"g{n}" for n in range(4000)]
    assert 0.08 < len(held_out(names, [1] * 4000, 0.1, 0)) / 4000 < 0.12


def test_another_seed_holds_out_other_groups() -> None:
    names, counts = [f"g{n}" for n in range(50)], [1] * 50
    assert held_out(names, counts, 0.2, 0) != held_out(names, counts, 0.2, 1)
