"""Finds texts that say the same, exactly or nearly, whatever order the rows come in.

Near duplicates are texts whose sets of three-word shingles have a Jaccard similarity of at least the threshold; they
are clustered by single linkage. Candidates share one of their rarest shingles (prefix filtering: Chaudhuri, Ganti and
Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", 2006), so a phrase of every mail costs nothing.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from ftpipeline.steps.groups import DisjointSets
from ftpipeline.steps.text import words

SHINGLE = 3
"""Words of a shingle; a shorter text is one shingle."""

POSTINGS = 64
"""Texts kept per shingle: in a family of templates a text is compared to the first of them only, which are joined."""

_Shingles = frozenset[tuple[str, ...]]


def shingles(text: str) -> _Shingles:
    """Return the text's set of shingles, never empty."""
    tokens = words(text)
    return frozenset(tokens[i : i + SHINGLE] for i in range(max(1, len(tokens) - SHINGLE + 1)))


def near_duplicates(texts: Sequence[str], threshold: float) -> list[list[int]]:
    """Return clusters of indices, by smallest index, each sorted.

    Args:
        texts: in an order that does not depend on how the rows came, such as by id: it decides which members of a large
            family are compared.
        threshold: least Jaccard similarity, in (0, 1].
    """
    clusters = DisjointSets(len(texts))
    first: dict[_Shingles, int] = {}
    for index, text in enumerate(texts):
        clusters.join(index, first.setdefault(shingles(text), index))
    _join_similar(first, Fraction(str(threshold)), clusters)
    return clusters.sets()


def _join_similar(first: Mapping[_Shingles, int], threshold: Fraction, clusters: DisjointSets) -> None:
    frequency = Counter(shingle for members in first for shingle in members)
    postings: dict[tuple[str, ...], list[tuple[int, _Shingles]]] = {}
    for members, index in first.items():
        prefix = sorted(members, key=lambda shingle: (frequency[shingle], shingle))[: _prefix(len(members), threshold)]
        candidates = {other: held for shingle in prefix for other, held in postings.get(shingle, ())}
        for other, held in sorted(candidates.items()):
            if clusters.find(index) != clusters.find(other) and _similar(members, held, threshold):
                clusters.join(index, other)
        for shingle in prefix:
            holders = postings.setdefault(shingle, [])
            if len(holders) < POSTINGS:
                holders.append((index, members))


def _prefix(size: int, threshold: Fraction) -> int:
    """Return how many of the rarest shingles two similar sets cannot all differ in."""
    return size - math.ceil(threshold * size) + 1


def _similar(one: _Shingles, other: _Shingles, threshold: Fraction) -> bool:
    shared = len(one & other)
    return shared * threshold.denominator >= threshold.numerator * (len(one) + len(other) - shared)
