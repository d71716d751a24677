"""How far a model has moved from its base, measured on a few fixed rows."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ftpipeline import digest
from ftpipeline.backends.dataset import EncodedRows
from ftpipeline.backends.tasks import Collator
from ftpipeline.digest import Digest
from ftpipeline.errors import NoLearningError, NonFiniteError

PROBE_ROWS = 32
_BATCH = 8
_NO_LABEL = -100


class DriftProbe:
    """Compares a model's predictions with those it made when the probe was set up.

    The probe is the first rows in the order of the hashes of their token ids, so that it is the same whatever the order
    of the rows. A prediction is the distribution over the classes of a row, or over the vocabulary at each of a row's
    label tokens. Law: measuring draws from no random generator and leaves the model as it was.

    Attributes:
        digest: of the rows' token ids.
    """

    def __init__(self, model: nn.Module, rows: EncodedRows, collate: Collator) -> None:
        """Choose the rows and remember what the model says of them.

        Args:
            model: the base with its fresh adapter, which changes nothing yet.
            rows: the encoded validation rows.
            collate: makes a padded batch of rows.
        """
        chosen = sorted((rows[index] for index in range(len(rows))), key=_row_digest)[:PROBE_ROWS]
        self.digest: Digest = digest.of_json([row["input_ids"] for row in chosen])
        self._batches = [collate(chosen[start : start + _BATCH]) for start in range(0, len(chosen), _BATCH)]
        self._base = self._reference = self._log_probabilities(model)

    def refer_to(self, model: nn.Module) -> None:
        """Measure from now on how far the model has moved from what it says now, not from its base."""
        self._reference = self._log_probabilities(model)

    def measure(self, model: nn.Module) -> dict[str, Any]:
        """Return `kl`, the mean Kullback-Leibler divergence to the reference's predictions in nats, and the `probe`.

        Raises:
            NonFiniteError: a prediction is not finite.
        """
        log_probabilities = self._log_probabilities(model)
        kl = float((log_probabilities.exp() * (log_probabilities - self._reference)).sum(dim=-1).mean())
        if not math.isfinite(kl):
            raise NonFiniteError(f"divergence from the reference is {kl} on the probe rows; lower the learning rate")
        return {"kl": max(0.0, kl), "probe": self.digest}  # rounding may leave equal predictions just below zero

    def require_moved(self, model: nn.Module) -> None:
        """Return if the model predicts anything else than its base.

        Raises:
            NoLearningError: it does not: nothing was trained, or what was trained is not in use.
        """
        moved = float((self._log_probabilities(model) - self._base).abs().max())
        if not moved > 0.0:
            raise NoLearningError(
                f"the trained model answers all {len(self._base)} probe questions exactly as its base does; "
                "raise the learning rate, or check lora.target_modules",
                {"kind": "probe_unmoved", "value": moved, "limit": 0.0},
            )

    def _log_probabilities(self, model: nn.Module) -> Tensor:
        """Return log-probabilities of shape (predictions, outcomes), in double precision."""
        training, device = model.training, next(model.parameters()).device
        model.eval()
        try:
            with torch.no_grad():
                parts = [_predictions(model, batch, device) for batch in self._batches]
        finally:
            model.train(training)
        return torch.cat(parts)


def _row_digest(row: Mapping[str, Any]) -> str:
    return digest.of_json(row["input_ids"])


def _predictions(model: nn.Module, batch: Mapping[str, Any], device: torch.device) -> Tensor:
    inputs = {name: tensor.to(device) for name, tensor in batch.items() if name != "labels"}
    logits: Tensor = model(**inputs).logits
    if logits.dim() == 3:  # (rows, tokens, vocabulary): a token is predicted from the one before it
        logits = logits[:, :-1][batch["labels"][:, 1:].to(device) != _NO_LABEL]
    return torch.log_softmax(logits.double(), dim=-1).cpu()
