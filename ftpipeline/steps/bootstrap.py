"""Paired bootstrap: how far a difference between two models would move had the eval set been drawn again.

Whole rows are drawn with replacement, so what both models find hard stays hard for both (Efron and Tibshirani, 1993;
Koehn, 2004, for scores that are no mean over rows). The draws are the same for the same counts, every time.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ftpipeline.steps.paired import ACCURACY, Pairs

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float64]

LEVEL = 0.95
RESAMPLES = 2000
_SEED = 20070
_DECIMALS = 6  # far below what 2,000 draws resolve, and above what the order of a sum changes


@dataclass(frozen=True)
class Interval:
    """Where the middle 95 % of the resampled differences, candidate minus production, lie."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the length: a difference below it is within what the choice of rows explains."""
        return round((self.high - self.low) / 2, _DECIMALS)


def paired_interval(pairs: Pairs, metric: str) -> Interval:
    """Return the percentile interval of the difference between the scores of the two sides.

    Args:
        pairs: the answers; cost grows with the number of different cells, not of rows.
        metric: `accuracy` or `macro_f1`. In a resample, macro-F1 is the mean over the answers expected in it.
    """
    import numpy

    counts = numpy.array(list(pairs.cells.values()), numpy.float64)
    generator = numpy.random.Generator(numpy.random.PCG64(_SEED))
    draws = generator.multinomial(pairs.rows, counts / counts.sum(), size=RESAMPLES).astype(numpy.float64)
    differences = _accuracy(pairs, draws) if metric == ACCURACY else _macro_f1(pairs, draws)
    low, high = numpy.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(round(float(low), _DECIMALS), round(float(high), _DECIMALS))


def _accuracy(pairs: Pairs, draws: "Floats") -> "Floats":
    import numpy

    gained = [(candidate == expected) - (production == expected) for expected, candidate, production in pairs.cells]
    difference: Floats = draws @ numpy.array(gained, numpy.float64) / pairs.rows
    return difference


def _macro_f1(pairs: Pairs, draws: "Floats") -> "Floats":
    """Return the difference of each draw; `draws` has shape (resamples, cells)."""
    import numpy

    expected, candidate, production = (numpy.array(column) for column in zip(*pairs.cells, strict=True))
    labels = numpy.unique(expected)
    wanted = draws @ _holds(expected, labels)
    classes = (wanted > 0).sum(axis=1)
    scores = []
    for answers in (candidate, production):
        given = draws @ _holds(answers, labels)
        both = draws @ (_holds(answers, labels) * (answers == expected)[:, None])
        total = wanted + given
        f1 = numpy.divide(2 * both, total, out=numpy.zeros_like(total), where=total > 0)
        scores.append((f1 * (wanted > 0)).sum(axis=1) / classes)
    difference: Floats = scores[0] - scores[1]
    return difference


def _holds(column: Any, labels: Any) -> "Floats":
    """Return which label each cell holds, shape (cells, labels)."""
    import numpy

    held: Floats = (column[:, None] == labels[None, :]).astype(numpy.float64)
    return held
