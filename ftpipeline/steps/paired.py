"""Two models' answers to the same rows, side by side: what a difference between their scores rests on.

Of a set of rows only the counts of (expected, candidate's answer, production's answer) are kept: every score of either
side, and every resampling of the rows, follows from them, and no row can be told from another.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftpipeline.errors import GateRecordError
from ftpipeline.steps.metrics import LabelCounts

ACCURACY, MACRO_F1 = "accuracy", "macro_f1"
SCORED_BY: Mapping[str, str] = {"task": MACRO_F1, "regression": MACRO_F1, "safety": ACCURACY}
"""The metric that is the score of each role."""

SIDES = ("candidate", "production")
_AGAIN = "evaluate both artifacts again"

Cell = tuple[str, str, str]
"""Expected answer, candidate's answer, production's answer."""


@dataclass(frozen=True)
class Pairs:
    """How many rows share each combination of answers.

    Round-trip law: `Pairs.from_json(pairs.to_json()) == pairs`.

    Attributes:
        cells: combination to number of rows, all of them positive; at least one.
    """

    cells: Mapping[Cell, int]

    @classmethod
    def of_answers(cls, expected: Sequence[str], candidate: Sequence[str], production: Sequence[str]) -> "Pairs":
        """Count the rows of three columns of one length, at least one row."""
        return cls(dict(sorted(Counter(zip(expected, candidate, production, strict=True)).items())))

    @classmethod
    def from_json(cls, rows: Any) -> "Pairs":
        """Return what `to_json` wrote.

        Raises:
            GateRecordError: it is something else.
        """
        try:
            cells = {(row["expected"], row["candidate"], row["production"]): row["rows"] for row in rows}
        except (KeyError, TypeError) as error:
            raise GateRecordError(
                f"paired answers cannot be read ({error!r}); evaluate both artifacts again"
            ) from error
        texts = all(isinstance(text, str) for cell in cells for text in cell)
        if not cells or len(cells) != len(rows) or not texts or not all(map(_is_count, cells.values())):
            raise GateRecordError(
                "paired answers are not distinct texts with row counts; evaluate both artifacts again"
            )
        return cls(cells)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the cells as JSON values."""
        return [
            dict(zip(("expected", *SIDES, "rows"), (*cell, rows), strict=True)) for cell, rows in self.cells.items()
        ]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.cells.values())

    def correct(self, side: str) -> int:
        """Return how many rows a side answers as expected."""
        answer = 1 + SIDES.index(side)
        return sum(rows for cell, rows in self.cells.items() if cell[answer] == cell[0])

    def score(self, side: str, metric: str) -> float:
        """Return the score of a side, bit for bit what `metrics.classification_report` measures on the rows."""
        if metric == ACCURACY:
            return self.correct(side) / self.rows
        answer = 1 + SIDES.index(side)
        given, wanted, both = Counter[str](), Counter[str](), Counter[str]()
        for cell, rows in self.cells.items():
            given[cell[answer]] += rows
            wanted[cell[0]] += rows
            both[cell[0]] += rows if cell[answer] == cell[0] else 0
        scores = [LabelCounts(both[key], given[key] - both[key], wanted[key] - both[key]).f1 for key in wanted]
        return math.fsum(scores) / len(scores)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
