"""Which label a causal model gives a text, by the likelihood of each label's own spelling.

The rule: a label's score is the mean log-likelihood, in nats, of its tokens and of the token that ends the answer,
given the prompt. The mean, so that a label is not the less likely for being long; the end, so that `billing` does not
win by being how `billing_refund` begins. The answer is the label of the highest score, the first of equal ones; its
confidence is the softmax of the scores over the declared labels.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ftpipeline.errors import ExportCheckError

Floats = NDArray[np.float64]


def token_log_likelihoods(logits: NDArray[np.floating], tokens: Sequence[int]) -> Floats:
    """Return the log-likelihood of each token in nats, in double precision, shape (tokens,).

    Args:
        logits: what the model answers before each token, shape (tokens, vocabulary).
        tokens: the tokens' ids.

    Raises:
        ExportCheckError: a logit is not finite.
    """
    wide = np.asarray(logits, np.float64)
    if not np.isfinite(wide).all():
        raise ExportCheckError("the model answers a logit that is not finite; train an adapter with sound weights")
    shifted = wide - wide.max(axis=1, keepdims=True)
    chosen = shifted[np.arange(len(tokens)), list(tokens)]
    result: Floats = chosen - np.log(np.exp(shifted).sum(axis=1))
    return result


def label_scores(log_likelihoods: Sequence[Floats]) -> Floats:
    """Return the score of each label from the log-likelihoods of its tokens, shape (labels,)."""
    return np.array([tokens.mean() for tokens in log_likelihoods])
