"""Which rows belong together - connected components over all keys that rows share - and which groups are held out."""

import hashlib
from collections.abc import Iterable, Sequence


class DisjointSets:
    """Sets of 0..n-1 that can only grow together; the representative of a set is its smallest member."""

    def __init__(self, n: int) -> None:
        self._parents = list(range(n))

    def find(self, item: int) -> int:
        """Return the smallest member of the item's set."""
        parents = self._parents
        while parents[item] != item:
            parents[item] = parents[parents[item]]
            item = parents[item]
        return item

    def join(self, one: int, other: int) -> None:
        """Make two sets one."""
        low, high = sorted((self.find(one), self.find(other)))
        self._parents[high] = low

    def sets(self) -> list[list[int]]:
        """Return the sets, by smallest member, each sorted."""
        members: dict[int, list[int]] = {}
        for item in range(len(self._parents)):
            members.setdefault(self.find(item), []).append(item)
        return list(members.values())


def components(keys: Sequence[Iterable[str]]) -> list[list[int]]:
    """Return the indices of rows that are tied by keys, directly or through others.

    Args:
        keys: the keys of each row; a row without keys is tied to none.
    """
    sets = DisjointSets(len(keys))
    holder: dict[str, int] = {}
    for index, row in enumerate(keys):
        for key in row:
            sets.join(index, holder.setdefault(key, index))
    return sets.sets()


def held_out(names: Sequence[str], sizes: Sequence[int], fraction: float, seed: int) -> set[int]:
    """Choose the groups to hold out: those that `is_held_out` names, whatever other groups there are.

    Three exceptions, for data on which that rule gives no usable split: a group of more than half of all rows is not
    held out; where no group would be, the one with the smallest hash is; where all would be, the one with the largest
    is not.

    Args:
        names: a stable name of each group.
        sizes: rows of each group.
        fraction: share of the groups to hold out, in (0, 1).
        seed: another seed gives another choice.

    Returns:
        Indices of the chosen groups; some but not all, where there are two groups or more.
    """
    places = [_place(name, seed) for name in names]
    by_place = sorted(range(len(names)), key=lambda index: (places[index], names[index]))
    usual = [index for index in by_place if 2 * sizes[index] <= sum(sizes)]
    chosen = {index for index in usual if places[index] < fraction}
    if not chosen:
        return set(usual[:1])
    return chosen - {by_place[-1]} if len(chosen) == len(names) else chosen


def is_held_out(name: str, fraction: float, seed: int) -> bool:
    """Tell whether a name falls, by its hash, into the first `fraction` of all hashes."""
    return _place(name, seed) < fraction


def _place(name: str, seed: int) -> float:
    """Return a number in [0, 1) that the name and the seed alone decide."""
    hashed = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return int.from_bytes(hashed[:6], "big") / 2**48
