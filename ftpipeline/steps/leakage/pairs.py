"""What a search finds: eval rows in training rows."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ftpipeline.steps.leakage.layout import Found

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array, Int

_LEAST_ROOM = 4096


class Pair(NamedTuple):
    """An eval row in a training row, with the units or shingles found."""

    row: int
    train: int
    found: int


class Pairs:
    """Collects pairs from kernels that stop when their room is full.

    Args:
        rows: eval rows.
        every: keep every pair, not only one training row of each eval row, which the kernels note by themselves.

    Attributes:
        every: as given.
        room: for the pairs that a kernel notes.
    """

    def __init__(self, rows: int, every: bool) -> None:
        import numpy as np

        size = max(_LEAST_ROOM, 2 * rows) if every else 0
        self.every = every
        self.room = Found(
            np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int32), np.zeros(1, np.int64)
        )
        self._pairs: list[Pair] = []

    def collect(self, rows: int, kernel: "Callable[[int], Int]") -> None:
        """Call a kernel with the row to begin with until it is through, and keep what it finds."""
        done = 0
        while done < rows:
            done = int(kernel(done))
            count = int(self.room.taken[0])
            self.room.taken[0] = 0
            columns = (column[:count].tolist() for column in self.room[:3])
            self._pairs += map(Pair._make, zip(*columns, strict=True))

    def found(self, trains: "Array", units: "Array") -> Iterator[Pair]:
        """Yield what was found.

        Args:
            trains: by eval row, the training row that a kernel noted, -1 for none.
            units: by eval row, how much of it stands there.
        """
        if self.every:
            yield from self._pairs
            return
        for row in (trains >= 0).nonzero()[0]:
            yield Pair(int(row), int(trains[row]), int(units[row]))
