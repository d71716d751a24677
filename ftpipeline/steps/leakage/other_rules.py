"""What finds eval rows that shingles of tokens miss: equality, short rows, and characters of scripts without blanks."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ftpipeline.steps.leakage.cutter import Cutter, kept
from ftpipeline.steps.leakage.hits import CHARACTERS, EQUAL, SHINGLE, SHORT, SHORTEST
from ftpipeline.steps.leakage.layout import FOLDS_OTHERWISE, SPACELESS, Texts, Units
from ftpipeline.steps.leakage.pairs import Pair
from ftpipeline.steps.leakage.plain import is_mostly_spaceless, tokens_of
from ftpipeline.steps.leakage.searches import EqualSearch, ShortSearch
from ftpipeline.steps.leakage.shingle_search import ShingleSearch
from ftpipeline.steps.leakage.texts import from_strings, text_at
from ftpipeline.steps.text import words

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array


class OtherRules:
    """The rules beside `containment`, over the same chunks.

    Args:
        cutter: what cuts the training rows.
        evals: texts of the eval rows.
        tokens: their tokens.
        needed: least number of shingles to find, by how many a row has.
        every: find every pair, not only the first training row of each eval row.

    Raises:
        HashCollision: as by ShingleSearch.
    """

    def __init__(
        self, cutter: Cutter, evals: Sequence[str], tokens: Units, needed: Callable[[int], int], every: bool
    ) -> None:
        import numpy as np

        self._cutter = cutter
        counts = np.diff(tokens.bounds)
        short = np.flatnonzero((counts >= SHORTEST) & (counts < SHINGLE))
        self._short = ShortSearch(tokens, short, SHORTEST, every) if len(short) else None
        spaceless = _mostly_spaceless(evals, tokens)
        characters = _only(kept(cutter.characters(tokens, len(evals)), len(evals)), spaceless)
        self._characters = ShingleSearch(characters, SHINGLE, needed, every) if spaceless.any() else None
        owners, folded = cutter.all_folded(from_strings(evals))
        self._equal = EqualSearch(folded, owners, every)
        wordless = np.flatnonzero(np.bincount(owners, np.diff(folded.bounds), minlength=len(evals)) == 0)
        self._wordless = _Wordless({row: evals[row] for row in wordless.tolist()}, every)

    def feed(self, texts: Texts, first: int, last: int, tokens: Units, offset: int) -> None:
        """Search rows `first` to `last` of `texts`, cut into `tokens`; the first of them has the number `offset`."""
        import numpy as np

        rows = last - first
        flags = tokens.flags[:rows]
        if self._short is not None:
            self._short.feed(tokens, rows, offset)
        if self._characters is not None and (flags & SPACELESS).any():
            self._characters.feed(self._cutter.characters(tokens, rows), rows, offset)
        self._equal.feed(tokens, np.arange(offset, offset + rows), FOLDS_OTHERWISE)
        folding = flags & FOLDS_OTHERWISE != 0
        if folding.any():
            for chosen, units in self._cutter.folded(texts, first + np.flatnonzero(folding)):
                self._equal.feed(units, chosen - first + offset, 0)
        if not self._wordless.is_done():
            for row in np.flatnonzero(folding | (np.diff(tokens.bounds[: rows + 1]) == 0)):
                self._wordless.feed(text_at(texts, first + int(row)), offset + int(row))

    def found(self) -> Iterator[tuple[str, Pair, float]]:
        """Yield rule, pair and score of what was found."""
        yield from ((EQUAL, pair, 1.0) for pair in self._equal.pairs())
        yield from ((EQUAL, pair, 1.0) for pair in self._wordless.pairs())
        if self._short is not None:
            yield from ((SHORT, pair, 1.0) for pair in self._short.pairs())
        if self._characters is not None:
            yield from ((CHARACTERS, pair, self._characters.score(pair)) for pair in self._characters.pairs())


class _Wordless:
    """Finds eval rows without any word, such as a lone emoji, by all of their text."""

    def __init__(self, texts: Mapping[int, str], every: bool) -> None:
        self._every = every
        self._rows: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for row, text in texts.items():
            self._rows[words(text)].append(row)
        self._pairs: list[Pair] = []

    def is_done(self) -> bool:
        """Tell whether no training row can add anything."""
        return not self._rows

    def feed(self, text: str, number: int) -> None:
        """Search one training row."""
        key = words(text)
        self._pairs += [Pair(row, number, 1) for row in self._rows.get(key, ())]
        if not self._every:
            self._rows.pop(key, None)

    def pairs(self) -> Iterator[Pair]:
        """Yield what was found."""
        return iter(self._pairs)


def _mostly_spaceless(texts: Sequence[str], tokens: Units) -> "Array":
    """Tell of each row whether at least half of it is in scripts without blanks."""
    import numpy as np

    wanted = np.zeros(len(texts), np.bool_)
    for row in np.flatnonzero(tokens.flags & SPACELESS).tolist():
        wanted[row] = is_mostly_spaceless(tokens_of(texts[row]))
    return wanted


def _only(units: Units, wanted: "Array") -> Units:
    """Return units without those of the rows that are not wanted."""
    import numpy as np

    counts = np.diff(units.bounds)
    keep = np.repeat(wanted, counts)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts * wanted)])
    edges, sums = units.edges[np.repeat(keep, 2)], np.where(wanted, units.sums, np.uint64(0))
    return units._replace(edges=edges, hashes=units.hashes[keep], bounds=bounds, sums=sums)
