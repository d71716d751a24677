"""Finds texts that say the same, exactly or nearly, whatever order the rows come in.

Near duplicates are texts whose sets of three-word shingles have a Jaccard similarity of at least the threshold; they
are clustered by single linkage. Candidates share one of their rarest shingles (prefix filtering: Chaudhuri, Ganti and
Kaushik, "A Primitive Operator for Similarity Joins in Data Cleaning", 2006), so a phrase of every mail costs nothing.
Shingles are 64-bit hashes in flat arrays: what a text costs does not grow with the number of texts.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ftpipeline.steps.groups import DisjointSets
from ftpipeline.steps.shingles import Shingler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POSTINGS = 64
"""How many later texts a text is compared to for one shingle, in a family of templates that all hold it."""

_COUNTERS = 1 << 20  # frequencies by the low bits of a shingle: a collision changes the order of a prefix, no result


def near_duplicates(texts: Sequence[str], threshold: float) -> list[list[int]]:
    """Return clusters of indices, by smallest index, each sorted.

    Args:
        texts: in an order that does not depend on how the rows came, such as by id: it decides which members of a large
            family are compared.
        threshold: least Jaccard similarity, in (0, 1].
    """
    clusters = DisjointSets(len(texts))
    shingler, first = Shingler(), dict[bytes, int]()
    distinct: list[int] = []
    sets: list[NDArray[np.uint64]] = []
    for index, text in enumerate(texts):
        members = shingler.shingles(text)
        holder = first.setdefault(_name(members), index)
        if holder == index:
            distinct.append(index)
            sets.append(members)
        else:
            clusters.join(index, holder)
    if len(sets) > 1:
        _join_similar(_Collection(distinct, sets, Fraction(str(threshold))), clusters)
    return clusters.sets()


def _name(members: "NDArray[np.uint64]") -> bytes:
    """Return a short name of a set, so that the sets themselves are held once."""
    return hashlib.blake2b(members.tobytes(), digest_size=16).digest()


@dataclass(frozen=True)
class _Collection:
    """Sets of shingles to be joined.

    Attributes:
        texts: index of the text of each set.
        sets: sorted hashes, no two sets equal.
        threshold: least similarity.
    """

    texts: Sequence[int]
    sets: "Sequence[NDArray[np.uint64]]"
    threshold: Fraction

    def similar(self, one: int, other: int) -> bool:
        """Compare two sets exactly."""
        import numpy as np

        a, b = self.sets[one], self.sets[other]
        low, high = sorted((len(a), len(b)))
        if low * self.threshold.denominator < self.threshold.numerator * high:
            return False
        both = np.concatenate((a, b))
        both.sort()
        shared = int(np.count_nonzero(both[1:] == both[:-1]))
        return shared * self.threshold.denominator >= self.threshold.numerator * (len(a) + len(b) - shared)


def _join_similar(collection: _Collection, clusters: DisjointSets) -> None:
    """Compare the pairs that share a shingle of their prefixes, neighbours first, unless they are in one cluster."""
    import numpy as np

    postings = _postings(collection)
    refused: set[tuple[int, int]] = set()
    places = np.arange(len(postings.shingles))
    for distance in range(1, POSTINGS + 1):
        places = postings.followed(places, distance)
        for one, other in postings.pairs(places, distance):
            a, b = collection.texts[one], collection.texts[other]
            if (one, other) in refused or clusters.find(a) == clusters.find(b):
                continue
            if collection.similar(one, other):
                clusters.join(a, b)
            else:
                refused.add((one, other))
        if distance & (distance - 1) == 0:  # now and then: most families are one cluster after their neighbours met
            roots = np.array([clusters.find(text) for text in collection.texts])
            places = postings.unsettled(places, roots)


@dataclass(frozen=True)
class _Postings:
    """Shingles that several sets hold in their prefixes, each with one of its sets: by shingle and then by set."""

    shingles: "NDArray[np.uint64]"
    holders: "NDArray[np.int64]"

    def followed(self, places: "NDArray[np.int64]", distance: int) -> "NDArray[np.int64]":
        """Return the places at whose distance the same shingle still stands."""
        places = places[places + distance < len(self.shingles)]
        still: NDArray[np.int64] = places[self.shingles[places] == self.shingles[places + distance]]
        return still

    def pairs(self, places: "NDArray[np.int64]", distance: int) -> Iterator[tuple[int, int]]:
        """Yield the pairs of sets at these places and at the distance from them, each once and in order."""
        import numpy as np

        pairs = np.unique(np.stack((self.holders[places], self.holders[places + distance])), axis=1)
        return zip(*pairs.tolist(), strict=True)

    def unsettled(self, places: "NDArray[np.int64]", roots: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """Return the places of shingles whose sets are not in one cluster yet."""
        import numpy as np

        if not len(places):
            return places
        starts = np.flatnonzero(np.append(True, self.shingles[1:] != self.shingles[:-1]))
        found = roots[self.holders]
        is_one = np.minimum.reduceat(found, starts) == np.maximum.reduceat(found, starts)
        left: NDArray[np.int64] = places[~is_one[np.searchsorted(starts, places, "right") - 1]]
        return left


def _postings(collection: _Collection) -> _Postings:
    import numpy as np

    counts = np.zeros(_COUNTERS, np.int64)
    for members in collection.sets:
        counts[members & np.uint64(_COUNTERS - 1)] += 1
    prefixes = [_prefix(members, counts, collection.threshold) for members in collection.sets]
    shingles = np.concatenate(prefixes)
    holders = np.repeat(np.arange(len(prefixes)), [len(prefix) for prefix in prefixes])
    order = np.argsort(shingles, kind="stable")
    shingles, holders = shingles[order], holders[order]
    with_next = np.append(shingles[1:] == shingles[:-1], False)
    shared = with_next | np.append(False, with_next[:-1])
    return _Postings(shingles[shared], holders[shared])


def _prefix(members: "NDArray[np.uint64]", counts: "NDArray[np.int64]", threshold: Fraction) -> "NDArray[np.uint64]":
    """Return the rarest shingles, so many that two similar sets cannot differ in all of them."""
    import numpy as np

    size = len(members) - math.ceil(threshold * len(members)) + 1
    rarest_first = np.argsort(counts[members & np.uint64(_COUNTERS - 1)], kind="stable")
    return members[rarest_first[:size]]
