"""Logits as probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftpipeline.errors import ExportCheckError


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probabilities of one text's logits, shape (labels,), in double precision.

    Raises:
        ExportCheckError: a logit is not finite.
    """
    if not np.isfinite(logits).all():
        raise ExportCheckError("the model answers a logit that is not finite; train an adapter with sound weights")
    shifted = logits.astype(np.float64)
    powers = np.exp(shifted - shifted.max())
    probabilities: NDArray[np.float64] = powers / powers.sum()
    return probabilities
