"""The search for shared shingles that an engine runs over each chunk of training rows."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ftpipeline.steps.leakage.layout import Postings, Progress, Shingles, Units, table_size
from ftpipeline.steps.leakage.pairs import Pair, Pairs

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array, Int

_KEYS_A_WORD = 8
"""Places for keys in a filter to each of its words."""

_FIRST_SWEEP, _SWEEP_GROWTH = 4096, 4
"""Training rows before postings are swept for the first time, and by how many times more before each next time."""

_BINS = 256
"""Bins of a MinHash signature, a power of two; fewer miss more."""


class ShingleSearch:
    """Finds eval rows of which enough shingles stand in a training row.

    Args:
        evals: units of the eval rows.
        size: units of a shingle.
        needed: least number of shingles to find, by how many a row has.
        every: find every pair, not only the best training row of each eval row.
        minhash: compare only rows that share a minimum of their MinHash signatures: fewer look-ups, a few misses.

    Raises:
        HashCollision: two shingles share a hash; cut the rows with another seed.
    """

    def __init__(
        self, evals: Units, size: int, needed: Callable[[int], int], every: bool, *, minhash: bool = False
    ) -> None:
        import numpy as np

        self._evals, self._size = evals, size
        self._bins = _BINS if minhash else 0
        self._shingles, frequency = _numbered(evals, size)
        self._sizes = np.diff(self._shingles.bounds)
        slack = np.array([size - max(1, needed(size)) for size in range(int(self._sizes.max(initial=0)) + 1)])
        self._state = _fresh_state(slack[self._sizes].astype(np.int32), len(frequency))
        self._postings = _postings(self._shingles, self._state.slack, self._chosen())
        self._fed, self._next_sweep = 0, 0
        self._pairs = Pairs(len(self._sizes), every)

    def score(self, pair: Pair) -> float:
        """Return the share of the eval row's shingles that a pair has."""
        return pair.found / int(self._sizes[pair.row])

    @property
    def counters(self) -> "Array":
        """Posting touches, verifications and successes so far."""
        return self._state.counters

    def feed(self, train: Units, rows: int, offset: int) -> None:
        """Search training rows, the first of which has the number `offset`."""
        import numpy as np

        from ftpipeline.steps.leakage.index import sweep

        if self._fed >= self._next_sweep:
            sweep(self._shingles.keys, self._state.slack, self._postings)
            self._next_sweep = max(_FIRST_SWEEP, _SWEEP_GROWTH * self._fed)
        self._fed += rows
        longest = max(self._bins, int(np.diff(train.bounds[: rows + 1]).max(initial=0)))
        if longest >= len(self._state.held):
            size = 2 * longest + 1
            numbers, held, windows = (np.empty(size, np.int32) for _ in range(3))
            self._state = self._state._replace(
                posted=numbers, held=held, windows=windows, values=np.empty(size, np.uint64)
            )
        self._pairs.collect(rows, lambda first: self._scan(train, first, rows, offset))

    def _chosen(self) -> "Array":
        """Return which members of the eval rows may be posted: all, or the minima of bins."""
        import numpy as np

        from ftpipeline.steps.leakage.candidates import choose_minima

        chosen = np.full(len(self._shingles.members), not self._bins, np.uint8)
        if self._bins:
            choose_minima(self._shingles, self._bins, chosen)
        return chosen

    def _scan(self, train: Units, first: int, rows: int, offset: int) -> "Int":
        from ftpipeline.steps.leakage.scan import scan

        return scan(
            train,
            first,
            rows,
            offset,
            self._evals,
            self._size,
            self._shingles,
            self._postings,
            self._state,
            self._bins,
            self._pairs.every,
            self._pairs.room,
        )

    def pairs(self) -> Iterator[Pair]:
        """Yield what was found."""
        return self._pairs.found(self._state.trains, self._state.best)


class HashCollision(Exception):
    """Two different shingles of the eval side have one hash."""


def _numbered(evals: Units, size: int) -> tuple[Shingles, "Array"]:
    """Return the shingles, each row's rarest first, and the number of rows that have each."""
    import numpy as np

    from ftpipeline.steps.leakage.index import fill_filter, number_shingles, sort_rarest_first

    most = int(np.maximum(np.diff(evals.bounds) - size + 1, 0).sum())
    frequency = np.zeros(most, np.int32)
    shingles = Shingles(
        np.full(table_size(most), -1, np.int32),
        np.empty(0, np.uint64),
        np.empty(most, np.uint64),
        np.empty(most, np.int64),
        np.empty(most, np.int32),
        np.zeros(len(evals.bounds), np.int64),
    )
    total = int(number_shingles(evals, size, shingles, frequency))
    if total < 0:
        raise HashCollision
    members = int(shingles.bounds[-1])
    shingles = shingles._replace(
        bloom=_empty_filter(total),
        keys=shingles.keys[:total].copy(),
        origins=shingles.origins[:total].copy(),
        members=shingles.members[:members].copy(),
    )
    fill_filter(shingles.keys, shingles.bloom)
    frequency = frequency[:total].copy()
    sort_rarest_first(shingles, frequency)
    return shingles, frequency


def _postings(shingles: Shingles, slack: "Array", chosen: "Array") -> Postings:
    import numpy as np

    from ftpipeline.steps.leakage.index import count_postings, fill_postings

    total = len(shingles.keys)
    begins = np.zeros(total + 1, np.int64)
    count = count_postings(shingles, slack, chosen, begins)
    posted = int(np.count_nonzero(np.diff(begins)))
    postings = Postings(
        begins,
        np.zeros(total, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        _empty_filter(posted),
    )
    fill_postings(shingles, slack, chosen, postings)
    return postings


def _empty_filter(keys: int) -> "Array":
    import numpy as np

    return np.zeros(table_size(keys) // _KEYS_A_WORD, np.uint64)


def _fresh_state(slack: "Array", shingles: int) -> Progress:
    import numpy as np

    rows = len(slack)
    return Progress(
        slack,
        np.zeros(rows, np.int32),
        np.full(rows, -1, np.int64),
        np.full(rows, -1, np.int32),
        np.full(shingles, -1, np.int32),
        np.empty(shingles, np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.uint64),
        np.zeros(3, np.int64),
    )
