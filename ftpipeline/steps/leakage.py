r"""Finds eval rows in training rows: the eval side is indexed, the training side streams by.

Two rules. *equal*: both texts have the same words (`\w+` after NFKC and case folding). *containment*: the share of the
eval row's eight-token shingles (`\w+` of the lower-cased text) that stand in the training row reaches the threshold; an
eval row of five to seven tokens is one shingle, a shorter one can only be equal, because a few words in common give
nothing away. Memory is that of the eval side and the hits.

A training row is compared with an eval row only if it holds one of the eval row's rarest shingles: of n shingles of
which k must be found, any k meet the n - k + 1 rarest. So a signature that thousands of rows share costs nothing, and
no hit is lost. Shingles are compared as text, not as hashes: there are no collisions.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ftpipeline.errors import PipelineFileError
from ftpipeline.steps.text import words

SHINGLE = 8
"""Tokens of a shingle."""

SHORTEST = 5
"""Tokens of the shortest eval row that can be contained in a longer text."""

EQUAL, CONTAINMENT = "equal", "containment"
"""Names of the rules."""

METHOD = "exact"
"""Name of the engine: it finds every hit and nothing else."""

_TOKEN = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Hit:
    """An eval row found in a training row.

    Attributes:
        eval_row: index of the eval row.
        train_id: id of the training row.
        score: share of the eval row's shingles found, 1.0 under `equal`.
        rule: name of the rule.
    """

    eval_row: int
    train_id: str
    score: float
    rule: str


def check(train: Iterable[tuple[str, str]], evals: Sequence[str], threshold: float) -> list[Hit]:
    """Return every hit, sorted by eval row and training id; `equal` goes before `containment`.

    Args:
        train: id and text of the training rows; an id may come with several texts, its best hit is reported.
        evals: texts of the eval rows.
        threshold: least share of shingles, in (0, 1].

    Raises:
        PipelineFileError: the threshold is outside (0, 1].
    """
    index = _EvalIndex(evals, threshold)
    best: dict[tuple[int, str], tuple[bool, float]] = {}
    for train_id, text in train:
        for row, found in index.hits(text):
            best[row, train_id] = max(found, best.get((row, train_id), found))
    return [
        Hit(row, train_id, score, EQUAL if equal else CONTAINMENT)
        for (row, train_id), (equal, score) in sorted(best.items())
    ]


class _EvalIndex:
    def __init__(self, evals: Sequence[str], threshold: float) -> None:
        if not 0 < threshold <= 1:
            raise PipelineFileError(f"leakage.threshold is {threshold}; give a share above 0 and up to 1")
        self._threshold = threshold
        self._by_words: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._shingles = [_eval_shingles(text) for text in evals]
        self._sizes = sorted({len(shingle) for shingles in self._shingles for shingle in shingles})
        self._by_rare_shingle: dict[tuple[str, ...], list[int]] = defaultdict(list)
        frequency = Counter(shingle for shingles in self._shingles for shingle in shingles)
        for row, text in enumerate(evals):
            self._by_words[words(text)].append(row)
            rarest = sorted(self._shingles[row], key=lambda shingle: (frequency[shingle], shingle))
            for shingle in rarest[: self._prefix(len(rarest))]:
                self._by_rare_shingle[shingle].append(row)

    def _prefix(self, size: int) -> int:
        """Return how many of the rarest shingles a row with enough of them cannot lack altogether."""
        needed = bisect_left(range(size + 1), self._threshold, key=lambda found: found / size) if size else 1
        return size - needed + 1

    def hits(self, text: str) -> Iterator[tuple[int, tuple[bool, float]]]:
        """Yield eval row, whether the texts are equal, and the score."""
        for row in self._by_words.get(words(text), ()):
            yield row, (True, 1.0)
        tokens = _TOKEN.findall(text.lower())
        held = {shingle for size in self._sizes for shingle in _windows(tokens, size)}
        candidates = {row for shingle in held & self._by_rare_shingle.keys() for row in self._by_rare_shingle[shingle]}
        for row in candidates:
            score = len(self._shingles[row] & held) / len(self._shingles[row])
            if score >= self._threshold:
                yield row, (False, score)


def _eval_shingles(text: str) -> frozenset[tuple[str, ...]]:
    tokens = _TOKEN.findall(text.lower())
    if len(tokens) < SHORTEST:
        return frozenset()
    return frozenset(_windows(tokens, min(SHINGLE, len(tokens))))


def _windows(tokens: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1))
