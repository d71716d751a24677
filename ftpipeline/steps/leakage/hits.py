"""What a leakage check finds, and the names of its rules and methods."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

SHINGLE = 8
"""Units of a shingle: tokens, or characters where a script sets no blanks."""

SHORTEST = 5
"""Tokens of the shortest eval row that can be contained in a longer text; fewer words in common give nothing away."""

EQUAL, CONTAINMENT, SHORT, CHARACTERS = RULES = ("equal", "containment", "short", "characters")
"""Names of the rules; where two find an eval row with the same score, the first one is named."""

EXACT, REFERENCE, MINHASH = METHODS = ("exact", "reference", "minhash")
"""Names of the methods."""

METHOD = EXACT
"""Name of the method that a pipeline uses: it finds every pair."""


NO_ROW = -1


@dataclass(frozen=True, slots=True)
class Hit:
    """An eval row found in a training row.

    Attributes:
        eval_row: index of the eval row.
        train_row: index of the training row; NO_ROW where having nothing in common meets the threshold (`reference`).
        score: share of the eval row that was found, in [0, 1].
        rule: name of the rule.
    """

    eval_row: int
    train_row: int
    score: float
    rule: str


def needed_for(threshold: float) -> Callable[[int], int]:
    """Return the function that says how many of `size` shingles make a share of at least `threshold`.

    It compares as floats do; `size + 1` says that no number is enough.
    """

    def needed(size: int) -> int:
        return bisect_left(range(size + 1), True, key=lambda found: found / max(size, 1) >= threshold)

    return needed
