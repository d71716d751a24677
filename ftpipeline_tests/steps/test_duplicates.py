"""Near duplicates are exactly the connected pairs of similar texts."""

import json
from itertools import combinations, permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.duplicates import POSTINGS, near_duplicates
from ftpipeline.steps.groups import DisjointSets
from ftpipeline.steps.text import words
from ftpipeline_tests.shared import shared

# Few words, so that texts overlap; fewer texts than postings, so that none is capped.
texts = st.lists(st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join), max_size=12)
thresholds = st.sampled_from([0.1, 0.3, 0.5, 0.6, 0.8, 1.0])


def shingles(text: str) -> set[tuple[str, ...]]:
    tokens = words(text)
    return {tokens[i : i + 3] for i in range(max(1, len(tokens) - 2))}


def oracle(given: list[str], threshold: float) -> list[list[int]]:
    clusters = DisjointSets(len(given))
    for one, other in combinations(range(len(given)), 2):
        a, b = shingles(given[one]), shingles(given[other])
        if round(len(a & b) / len(a | b), 9) >= threshold:
            clusters.join(one, other)
    return clusters.sets()


@given(texts, thresholds)
def test_clusters_are_those_of_comparing_every_pair(given_texts: list[str], threshold: float) -> None:
    assert near_duplicates(given_texts, threshold) == oracle(given_texts, threshold)


@given(texts, thresholds, st.randoms(use_true_random=False))
def test_the_order_of_texts_makes_no_other_cluster(given_texts: list[str], threshold: float, random: Any) -> None:
    order = random.sample(range(len(given_texts)), len(given_texts))
    shuffled = near_duplicates([given_texts[index] for index in order], threshold)
    assert sorted(sorted(order[i] for i in cluster) for cluster in shuffled) == near_duplicates(given_texts, threshold)


def test_texts_without_a_whole_shingle_are_compared_by_their_words() -> None:
    assert near_duplicates(["Cannot login!", "cannot login", "refund please", "👍", "👎"], 0.8) == [
        [0, 1],
        [2],
        [3],
        [4],
    ]


def test_a_chain_of_similar_texts_is_one_cluster_in_any_order() -> None:
    numbered = [" ".join(f"w{n}" for n in range(start, start + 40)) for start in (0, 6, 12)]
    assert near_duplicates(numbered, 0.6) == [[0, 1, 2]]
    assert near_duplicates([numbered[0], numbered[2], numbered[1]], 0.6) == [[0, 1, 2]]
    assert near_duplicates([numbered[0], numbered[2]], 0.6) == [[0], [1]]


def test_a_family_of_templates_larger_than_the_postings_is_one_cluster() -> None:
    template = " ".join(f"w{n}" for n in range(60))
    assert len(near_duplicates([f"{template} order {n}" for n in range(4 * POSTINGS)], 0.8)) == 1


def test_the_shared_chain_is_one_cluster_at_its_threshold() -> None:
    lines = shared("cases", "b", "dedupe_order.jsonl").read_bytes().splitlines()
    chained = [json.loads(line)["text"] for line in lines]
    for order in permutations(chained):
        assert near_duplicates(order, 0.6) == [[0, 1, 2]]
