"""The format check of a causal model: are the answers in its own words labels, and which?"""

from collections.abc import Sequence
from typing import Any

from ftpipeline.errors import ExportCheckError
from ftpipeline.steps.label_parsing import LabelParser
from ftpipeline.steps.metrics import classification_report

UNPARSABLE = "(unparsable)"
"""Stands for an answer that means no label; wrong whatever is expected."""


def generation_report(expected: Sequence[str], written: Sequence[str] | None, labels: Sequence[str]) -> dict[str, Any]:
    """Measure answers in a model's own words; an answer that means no label is wrong, and counted.

    Args:
        expected: expected answer per row.
        written: what the model wrote per row, in the same order.
        labels: the declared labels.

    Returns:
        `counts` (n, correct, unparsable), `macro_f1` and `unparsable_share`, from the raw counts, not rounded.

    Raises:
        ExportCheckError: the model has written nothing.
        LabelError: two labels are one in an answer.
    """
    if written is None:
        raise ExportCheckError("the runtime lets the model write nothing; score a causal model with a causal scorer")
    parser = LabelParser(labels)
    answers = [parser.parse(text) or UNPARSABLE for text in written]
    measured = classification_report(expected, answers, labels)
    unparsable = answers.count(UNPARSABLE)
    return {
        "counts": {"n": measured.n, "correct": measured.correct, "unparsable": unparsable},
        "macro_f1": measured.macro_f1,
        "unparsable_share": unparsable / measured.n,
    }
