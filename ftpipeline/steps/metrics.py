"""Metrics of a classifier that may abstain, from expected and given answers alone.

Convention, equal for every model that is measured on one eval set: macro-F1 is the unweighted mean of F1 over the
answers that are *expected* somewhere in the set. A class that is only predicted has no term of its own, so one stray
answer does not change the denominator; it counts against the class that was expected. An abstention is an answer like
any other: wrong unless `abstain` is what was expected. Nothing is rounded.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ftpipeline.errors import EmptyResultError, EvalSetError, LabelError
from ftpipeline.pipeline import ABSTAIN

AVERAGING = "macro-F1 over the answers expected in the eval set; abstentions count as wrong unless expected"


@dataclass(frozen=True)
class LabelCounts:
    """How often one answer was right, given wrongly, and missed."""

    tp: int
    fp: int
    fn: int

    @property
    def f1(self) -> float:
        """F1 of this answer; 0.0 where it was neither expected nor given."""
        total = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / total if total else 0.0


@dataclass(frozen=True)
class ClassificationReport:
    """What is measured of one model on one eval set.

    Attributes:
        n: rows.
        correct: rows answered as expected.
        abstained: rows answered `abstain`.
        distinct_predictions: number of different answers given.
        distinct_expected: number of different answers expected.
        macro_f1: mean F1 over the expected answers, in [0, 1].
        per_label: counts of every answer that was expected or given.
        confusion: (expected, given) to number of rows; pairs that did not occur are absent.
    """

    n: int
    correct: int
    abstained: int
    distinct_predictions: int
    distinct_expected: int
    macro_f1: float
    per_label: Mapping[str, LabelCounts]
    confusion: Mapping[tuple[str, str], int]

    @property
    def accuracy(self) -> float:
        """Share of rows answered as expected, in [0, 1]."""
        return self.correct / self.n

    @property
    def abstain_share(self) -> float:
        """Share of rows answered `abstain`, in [0, 1]."""
        return self.abstained / self.n


def classification_report(
    expected: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> ClassificationReport:
    """Measure `predicted` against `expected`.

    Args:
        expected: expected answer per row: a declared label or `abstain`.
        predicted: given answer per row, in the same order; one that is not a declared label is a wrong answer.
        labels: the declared label list, the same for every model that is compared.

    Raises:
        EmptyResultError: there is no row.
        EvalSetError: the two are of different length.
        LabelError: an expected answer is not declared, or the label list cannot be used.
    """
    _check(expected, predicted, labels)
    confusion = Counter(zip(expected, predicted, strict=True))
    given, wanted = Counter(predicted), Counter(expected)
    per_label = {}
    for label in sorted(given | wanted):
        tp = confusion[label, label]
        per_label[label] = LabelCounts(tp, given[label] - tp, wanted[label] - tp)
    return ClassificationReport(
        n=len(expected),
        correct=sum(counts.tp for counts in per_label.values()),
        abstained=given[ABSTAIN],
        distinct_predictions=len(given),
        distinct_expected=len(wanted),
        macro_f1=math.fsum(per_label[label].f1 for label in wanted) / len(wanted),
        per_label=per_label,
        confusion={pair: confusion[pair] for pair in sorted(confusion) if confusion[pair]},
    )


def check_labels(labels: Sequence[str]) -> None:
    """Refuse a label list that a classifier cannot answer from.

    Raises:
        LabelError: there are fewer than two labels, one stands twice, or one is `abstain`.
    """
    if len(labels) < 2:
        raise LabelError(f"{len(labels)} labels are declared; a classifier needs at least two")
    twice = sorted(label for label, count in Counter(labels).items() if count > 1)
    if twice:
        raise LabelError(f"label {twice[0]!r} is declared twice; declare each label once")
    if ABSTAIN in labels:
        raise LabelError(f"label {ABSTAIN!r} is the answer under the threshold; rename the label")


def _check(expected: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> None:
    check_labels(labels)
    if not expected:
        raise EmptyResultError("eval set has no row; give it rows")
    if len(expected) != len(predicted):
        raise EvalSetError(f"{len(predicted)} answers were given for {len(expected)} rows; score the eval set again")
    unknown = sorted(set(expected) - set(labels) - {ABSTAIN})
    if unknown:
        raise LabelError(
            f"eval set expects {unknown[0]!r} and {len(unknown) - 1} more undeclared answers; "
            f"declare them as labels or use {ABSTAIN!r}"
        )
