"""Merge a LoRA adapter into its base model, and prove that something was merged and nothing else changed."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel

from ftpipeline.backends.adapter_loading import attach
from ftpipeline.backends.classifier import load_classifier
from ftpipeline.backends.quiet import attaching_quietly
from ftpipeline.errors import ExportCheckError
from ftpipeline.steps.base_pin import check_base

LOGIT_TOLERANCE = 1e-3
"""Largest accepted logit difference between two fp32 forms of one model, relative to the largest logit or 1.

A merge alone moves logits by about 3e-7.
"""

_PROBE_ROWS = 2
_PROBE_LENGTH = 16


@dataclass(frozen=True)
class MergedModel:
    """A base model with its adapter merged in.

    Attributes:
        model: the merged classifier, fp32, in evaluation mode.
        probe: the fixed inputs that `logits` belong to.
        logits: the merged model's logits on `probe`, shape (rows, labels).
        max_logit_difference: largest absolute difference to the unmerged adapter model's logits on `probe`.
        delta_norm: Frobenius norm of everything the adapter changed in the weights it targets.
    """

    model: PreTrainedModel
    probe: Mapping[str, Tensor]
    logits: Tensor
    max_logit_difference: float
    delta_norm: float


def merge(base_model: Path, adapter: Path, labels: Sequence[str]) -> MergedModel:
    """Load `base_model` as a classifier of `labels` and merge `adapter` into it, in fp32.

    Raises:
        BaseModelMismatchError: the adapter was trained on another base; nothing is loaded.
        InputError: the base is no model that can classify.
        AdapterKeysError: keys or shapes of the adapter do not fit the base, or a layer stands in neither of them.
        ExportCheckError: a weight is not finite, the merge changed nothing, or it changed the answers.
    """
    check_base(base_model, adapter)
    base, untrained = load_classifier(base_model, labels, attention="eager")
    base.eval()
    probe = _probe(base)
    model = attach(base, adapter, untrained)
    with torch.no_grad():
        expected = model(**probe).logits
    before = _target_weights(model)
    with attaching_quietly():
        merged = model.merge_and_unload(safe_merge=True)
    delta_norm = _checked_delta(before, merged)
    with torch.no_grad():
        logits = merged(**probe).logits
    return MergedModel(merged, probe, logits, logit_difference("merging", expected, logits), delta_norm)


def logit_difference(change: str, expected: Tensor, actual: Tensor) -> float:
    """Return the largest absolute difference of two logit arrays of one shape.

    Raises:
        ExportCheckError: it is not finite, or beyond `LOGIT_TOLERANCE` of the largest expected logit.
    """
    difference = float((expected - actual).abs().max())
    limit = LOGIT_TOLERANCE * max(1.0, float(expected.abs().max()))
    if not difference <= limit:
        raise ExportCheckError(
            f"{change} moved the logits by {difference:.3g}, more than {limit:.3g}; train an adapter with sound weights"
        )
    return difference


def _probe(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return fixed inputs with and without padding, so that the attention mask is part of what is compared."""
    ids = torch.arange(_PROBE_ROWS * _PROBE_LENGTH).reshape(_PROBE_ROWS, _PROBE_LENGTH) % model.config.vocab_size
    mask = torch.ones_like(ids)
    mask[-1, _PROBE_LENGTH // 2 :] = 0
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    accepted = inspect.signature(model.forward).parameters
    return {name: tensor for name, tensor in inputs.items() if name in accepted}


def _target_weights(model: PeftModel) -> dict[str, Tensor]:
    """Return copies of the base weights that the adapter changes, by their name in the merged model."""
    weights: dict[str, Tensor] = {}
    for name, module in model.get_base_model().named_modules():
        if hasattr(module, "lora_A"):
            weights[f"{name}.weight"] = module.base_layer.weight.detach().clone()
    return weights


def _checked_delta(before: Mapping[str, Tensor], merged: nn.Module) -> float:
    after = dict(merged.named_parameters())
    for name, weight in sorted(after.items()):
        if not bool(torch.isfinite(weight).all()):
            raise ExportCheckError(f"merged weight {name} is not finite; the training diverged, train again")
    squares = sum(float((after[name].detach() - weight).double().square().sum()) for name, weight in before.items())
    if squares == 0.0:
        raise ExportCheckError("merging the adapter changed no weight of the base model; train it for at least a step")
    return float(squares**0.5)
