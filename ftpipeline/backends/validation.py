"""How well a model answers labelled rows right after training; the gate measures the exported file instead."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ftpipeline.errors import NonFiniteError
from ftpipeline.steps.metrics import classification_report

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]


def measure(logits: Floats, truth: Classes, labels: Sequence[str]) -> dict[str, float]:
    """Return mean cross-entropy in nats, accuracy and macro-F1.

    Args:
        logits: shape (rows, classes).
        truth: class id per row, shape (rows,).
        labels: label of each class id.

    Raises:
        NonFiniteError: a logit is not finite; no mean is taken over the others.
    """
    broken = int((~np.isfinite(logits)).any(axis=1).sum())
    if broken:
        raise NonFiniteError(
            f"{broken} of {len(truth)} validation rows have a logit that is not finite; lower the learning rate"
        )
    predicted = logits.argmax(axis=1)
    report = classification_report([labels[i] for i in truth], [labels[i] for i in predicted], labels)
    return {"loss": _cross_entropy(logits, truth), "accuracy": report.accuracy, "macro_f1": report.macro_f1}


def _cross_entropy(logits: Floats, truth: Classes) -> float:
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_likelihood = shifted[np.arange(len(truth)), truth] - np.log(np.exp(shifted).sum(axis=1))
    return float(-log_likelihood.mean())
