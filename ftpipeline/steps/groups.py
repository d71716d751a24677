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


def draw(names: Sequence[str], sizes: Sequence[int], wanted: int, seed: int) -> set[int]:
    """Choose whole groups of about `wanted` rows by the hash of their names, with no random state.

    Groups are taken in the order of their hashes; one that would overshoot is passed over, so a group larger than
    `wanted` is never chosen unless all are: then the smallest is. A group's place in the order does not depend on the
    others, so few groups change sides from one week to the next.

    Args:
        names: a stable name of each group.
        sizes: rows of each group.
        wanted: rows to choose.
        seed: another seed gives another choice.

    Returns:
        Indices of the chosen groups; at least one where there are groups.
    """
    hashes = [hashlib.sha256(f"{seed}:{name}".encode()).digest() for name in names]
    chosen: set[int] = set()
    room = wanted
    for index in sorted(range(len(names)), key=lambda index: hashes[index]):
        if sizes[index] <= room:
            chosen.add(index)
            room -= sizes[index]
    if not chosen and names:
        chosen.add(min(range(len(names)), key=lambda index: (sizes[index], hashes[index])))
    return chosen
