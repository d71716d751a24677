"""The engine: eval rows are indexed once, training rows stream past, memory is that of the eval side and one chunk."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ftpipeline.errors import SourceError
from ftpipeline.steps.leakage.cutter import Cutter
from ftpipeline.steps.leakage.hits import CONTAINMENT, SHINGLE
from ftpipeline.steps.leakage.layout import Texts
from ftpipeline.steps.leakage.other_rules import OtherRules
from ftpipeline.steps.leakage.pairs import Pair
from ftpipeline.steps.leakage.shingle_search import HashCollision, ShingleSearch
from ftpipeline.steps.leakage.texts import chunks, from_strings

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array

MOST_ROWS = 2**31 - 1
"""Training rows that one engine can number."""


class Engine:
    """Searches streamed training rows for eval rows.

    Args:
        evals: texts of the eval rows.
        needed: least number of shingles to find, by how many a row has.
        every: report every pair; if false, the best training row of each eval row and rule.
        shingles_only: apply no rule but `containment`.
        minhash: look for shingles of tokens by MinHash; the other rules stay exact.

    Attributes:
        rows: training rows seen so far.
    """

    def __init__(
        self,
        evals: Sequence[str],
        needed: Callable[[int], int],
        *,
        every: bool = False,
        shingles_only: bool = False,
        minhash: bool = False,
    ) -> None:
        self.rows = 0
        self._copies = _copies(evals)
        self._texts = list(self._copies)
        seed = 0
        while True:
            try:
                self._cutter = Cutter(seed)
                tokens = self._cutter.all_tokens(from_strings(self._texts))
                self._shingles = ShingleSearch(tokens, SHINGLE, needed, every, minhash=minhash)
                self._others = None if shingles_only else OtherRules(self._cutter, self._texts, tokens, needed, every)
                return
            except HashCollision:
                seed += 1

    @property
    def counters(self) -> "Array":
        """Posting touches, verifications and successes of the rule `containment` so far."""
        return self._shingles.counters

    def feed(self, texts: Texts) -> None:
        """Search the next training rows.

        Raises:
            SourceError: a text is not UTF-8, or there are more rows than can be numbered.
        """
        if self.rows + len(texts.offsets) > MOST_ROWS:
            raise SourceError(f"there are more than {MOST_ROWS} training rows; check them in parts")
        for first, last in chunks(texts):
            tokens = self._cutter.tokens(texts, first, last)
            self._shingles.feed(tokens, last - first, self.rows + first)
            if self._others is not None:
                self._others.feed(texts, first, last, tokens, self.rows + first)
        self.rows += len(texts.offsets) - 1

    def pairs(self) -> Iterator[tuple[str, int, int, float]]:
        """Yield rule, eval row, training row and score of what was found, in no particular order.

        Of an eval row that stands several times every copy is reported.
        """
        for rule, pair, score in self._found():
            for row in self._copies[self._texts[pair.row]]:
                yield rule, row, pair.train, score

    def _found(self) -> Iterator[tuple[str, Pair, float]]:
        yield from ((CONTAINMENT, pair, self._shingles.score(pair)) for pair in self._shingles.pairs())
        if self._others is not None:
            yield from self._others.found()


def _copies(texts: Sequence[str]) -> dict[str, list[int]]:
    """Return the rows of every distinct text."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        rows[text].append(row)
    return rows
