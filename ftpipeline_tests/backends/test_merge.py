"""A merge changes the base's weights and keeps the adapter model's answers."""

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ftpipeline.backends.merge import logit_difference, merge
from ftpipeline.errors import ExportCheckError
from ftpipeline_tests.backends.tiny_adapter import build_tiny_adapter
from ftpipeline_tests.tiny_model import LABELS


def test_the_merged_model_answers_as_the_adapter_model_does(base_model: Path, trained_adapter: Path) -> None:
    merged = merge(base_model, trained_adapter, LABELS)
    assert 0.0 <= merged.max_logit_difference < 1e-4
    assert merged.logits.shape == (2, len(LABELS))


def test_the_merged_weights_differ_from_the_base_by_the_recorded_norm(base_model: Path, trained_adapter: Path) -> None:
    merged = merge(base_model, trained_adapter, LABELS)
    base = load_file(base_model / "model.safetensors")
    after = {name.removeprefix("bert."): weight for name, weight in merged.model.named_parameters()}
    targets = [name for name in base if name.endswith(("query.weight", "key.weight", "value.weight"))]
    squares = sum(float((after[name].detach() - base[name]).double().square().sum()) for name in targets)
    assert merged.delta_norm == pytest.approx(math.sqrt(squares))
    assert merged.delta_norm > 0


def test_an_adapter_that_changes_nothing_is_refused(base_model: Path, tmp_path: Path) -> None:
    untrained = build_tiny_adapter(tmp_path / "untrained", base_model, LABELS, scale=0)
    with pytest.raises(ExportCheckError, match="changed no weight"):
        merge(base_model, untrained, LABELS)


@pytest.mark.parametrize("moved", [0.1, math.nan, math.inf])
def test_logits_that_moved_or_are_not_finite_are_refused(moved: float) -> None:
    with pytest.raises(ExportCheckError, match="merging moved the logits"):
        logit_difference("merging", torch.zeros(1, 2), torch.tensor([[0.0, moved]]))
