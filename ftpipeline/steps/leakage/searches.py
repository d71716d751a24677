"""The searches for whole eval rows that an engine runs over each chunk of training rows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ftpipeline.steps.leakage.layout import Lookup, Units, Wanted, table_size
from ftpipeline.steps.leakage.pairs import Pair, Pairs

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array


class EqualSearch:
    """Finds eval rows whose words are those of a training row.

    Args:
        evals: units of the eval rows' words.
        owners: eval row that each row of `evals` is.
        every: find every pair, not only the first training row of each eval row.
    """

    def __init__(self, evals: Units, owners: "Array", every: bool) -> None:
        from ftpipeline.steps.leakage.equality import index_wholes

        self._owners = owners
        self._wanted = _wanted(evals, len(owners))
        self._pairs = Pairs(len(owners), every)
        index_wholes(evals, self._wanted.lookup)

    def feed(self, train: Units, numbers: "Array", skipped: int) -> None:
        """Search training rows with the given numbers, except those that have a flag of `skipped`."""
        from ftpipeline.steps.leakage.equality import find_equal

        rows, pairs = len(numbers), self._pairs
        pairs.collect(
            rows,
            lambda first: find_equal(train, first, rows, numbers, skipped, self._wanted, pairs.every, pairs.room),
        )

    def pairs(self) -> Iterator[Pair]:
        """Yield what was found."""
        for pair in _found(self._pairs, self._wanted):
            yield pair._replace(row=int(self._owners[pair.row]))


class ShortSearch:
    """Finds eval rows of a few units that stand whole in a training row.

    Args:
        evals: units of the eval rows.
        rows: the eval rows to look for; each has at least `size` units.
        size: units by which they are looked up.
        every: find every pair, not only the first training row of each eval row.
    """

    def __init__(self, evals: Units, rows: "Array", size: int, every: bool) -> None:
        from ftpipeline.steps.leakage.equality import index_beginnings

        self._size = size
        total = len(evals.bounds) - 1
        self._wanted = _wanted(evals, total)
        self._pairs = Pairs(total, every)
        index_beginnings(evals, rows, size, self._wanted.lookup)

    def feed(self, train: Units, rows: int, offset: int) -> None:
        """Search training rows, the first of which has the number `offset`."""
        from ftpipeline.steps.leakage.equality import find_contained

        size, wanted, pairs = self._size, self._wanted, self._pairs
        pairs.collect(
            rows, lambda first: find_contained(train, first, rows, offset, size, wanted, pairs.every, pairs.room)
        )

    def pairs(self) -> Iterator[Pair]:
        """Yield what was found."""
        return _found(self._pairs, self._wanted)


def _wanted(evals: Units, rows: int) -> Wanted:
    import numpy as np

    slots = np.full(table_size(rows), -1, np.int32)
    lookup = Lookup(slots, np.empty(rows, np.uint64), np.full(rows, -1, np.int32))
    return Wanted(evals, lookup, np.full(rows, -1, np.int64))


def _found(pairs: Pairs, wanted: Wanted) -> Iterator[Pair]:
    import numpy as np

    return pairs.found(wanted.trains, np.ones_like(wanted.trains))
