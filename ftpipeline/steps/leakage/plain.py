"""The rules in plain Python, for few rows: it is done before the compiled engine is loaded, and finds the same pairs.

An eval row is compared with a training row only if that holds one of its rarest shingles: of n shingles of which k must
be found, any k meet the n - k + 1 rarest. Shingles are compared as text: there are no collisions.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from ftpipeline.steps.leakage.forms import is_spaceless
from ftpipeline.steps.leakage.hits import CHARACTERS, CONTAINMENT, EQUAL, SHINGLE, SHORT, SHORTEST
from ftpipeline.steps.text import words

Shingle = tuple[str, ...]
_TOKEN = re.compile(r"\w+")


class PlainEngine:
    """Finds every pair of an eval row and a training row.

    Args:
        evals: texts of the eval rows.
        needed: least number of shingles to find, by how many a row has.
    """

    def __init__(self, evals: Sequence[str], needed: Callable[[int], int]) -> None:
        tokens = [tokens_of(text) for text in evals]
        self._by_words: dict[Shingle, list[int]] = defaultdict(list)
        for row, text in enumerate(evals):
            self._by_words[words(text)].append(row)
        self._searches = [
            _Search(CONTAINMENT, [windows(row, SHINGLE) for row in tokens], needed),
            _Search(CHARACTERS, [_eval_characters(row) for row in tokens], needed),
        ]
        self._short: dict[Shingle, list[int]] = defaultdict(list)
        for index, units in enumerate(tokens):
            if SHORTEST <= len(units) < SHINGLE:
                self._short[tuple(units)].append(index)
        self._short_sizes = sorted({len(row) for row in self._short})

    def hits(self, text: str) -> Iterator[tuple[str, int, float]]:
        """Yield rule, eval row and score of what one training row holds."""
        for row in self._by_words.get(words(text), ()):
            yield EQUAL, row, 1.0
        tokens = tokens_of(text)
        held = {CONTAINMENT: windows(tokens, SHINGLE), CHARACTERS: characters_of(tokens)}
        for search in self._searches:
            for row, score in search.hits(held[search.rule]):
                yield search.rule, row, score
        for shingle in {shingle for size in self._short_sizes for shingle in windows(tokens, size)}:
            yield from ((SHORT, row, 1.0) for row in self._short.get(shingle, ()))


class _Search:
    def __init__(self, rule: str, rows: Sequence[frozenset[Shingle]], needed: Callable[[int], int]) -> None:
        self.rule = rule
        self._rows, self._needed = rows, needed
        self._by_rare_shingle: dict[Shingle, list[int]] = defaultdict(list)
        frequency = Counter(shingle for row in rows for shingle in row)
        for index, row in enumerate(rows):
            rarest = sorted(row, key=lambda shingle: (frequency[shingle], shingle))
            for shingle in rarest[: len(row) - needed(len(row)) + 1]:
                self._by_rare_shingle[shingle].append(index)

    def hits(self, held: frozenset[Shingle]) -> Iterator[tuple[int, float]]:
        """Yield eval row and score."""
        shared = held & self._by_rare_shingle.keys()
        for index in {index for shingle in shared for index in self._by_rare_shingle[shingle]}:
            row = self._rows[index]
            found = len(row & held)
            if found >= self._needed(len(row)):
                yield index, found / len(row)


def tokens_of(text: str) -> list[str]:
    r"""Return the `\w+` tokens of the lower-cased text."""
    return _TOKEN.findall(text.lower())


def windows(units: Sequence[str], size: int) -> frozenset[Shingle]:
    """Return the distinct runs of so many units."""
    return frozenset(tuple(units[i : i + size]) for i in range(len(units) - size + 1))


def characters_of(tokens: Sequence[str]) -> frozenset[Shingle]:
    """Return the character shingles of a row; one without any character of a script without blanks has none."""
    letters = "".join(tokens)
    return windows(letters, SHINGLE) if any(map(is_spaceless, letters)) else frozenset()


def is_mostly_spaceless(tokens: Sequence[str]) -> bool:
    """Tell whether at least half of a row's characters belong to scripts without blanks."""
    letters = "".join(tokens)
    return bool(letters) and 2 * sum(map(is_spaceless, letters)) >= len(letters)


def _eval_characters(tokens: Sequence[str]) -> frozenset[Shingle]:
    return characters_of(tokens) if is_mostly_spaceless(tokens) else frozenset()
