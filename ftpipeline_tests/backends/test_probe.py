"""How far a model has moved from its base: what is measured, and that measuring leaves no trace."""

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ftpipeline.backends.dataset import EncodedRows
from ftpipeline.backends.generators import capture
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.probe import PROBE_ROWS, DriftProbe
from ftpipeline.backends.tasks import SequenceClassification
from ftpipeline.errors import InputError, NoLearningError, NonFiniteError
from ftpipeline.schema import Train, validate
from ftpipeline_tests.tiny_model import LABELS, build_tiny_bert, build_tiny_split, tiny_train_params

Row = dict[str, Any]


class Lookup(nn.Module):
    """A model whose logits are the rows of a table by token id: one a text, or one a token."""

    def __init__(self, table: list[list[float]], *, per_token: bool = False) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.tensor(table))
        self.per_token = per_token

    def forward(self, input_ids: torch.Tensor) -> Any:
        logits = self.table[input_ids]
        return type("Output", (), {"logits": logits if self.per_token else logits[:, 0]})


def stack(rows: list[Row]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor([row[name] for row in rows]) for name in rows[0]}


def rows(count: int) -> EncodedRows:
    return EncodedRows([{"input_ids": [index % 2], "labels": 0} for index in range(count)])


def kl(p: list[float], q: list[float]) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def test_the_divergence_is_that_of_the_model_from_its_base_in_nats() -> None:
    model = Lookup([[0.0, 0.0], [0.0, 0.0]])
    probe = DriftProbe(model, rows(2), stack)
    model.table.data[0] = torch.tensor([math.log(0.9), math.log(0.1)])
    assert probe.measure(model)["kl"] == pytest.approx(kl([0.9, 0.1], [0.5, 0.5]) / 2)


def test_of_a_causal_model_only_the_label_tokens_count_each_predicted_from_the_one_before_it() -> None:
    model = Lookup([[0.0] * 4 for _ in range(4)], per_token=True)
    data = EncodedRows([{"input_ids": [0, 1, 2], "labels": [-100, -100, 2]}])
    probe = DriftProbe(model, data, stack)
    model.table.data[0, 0] = model.table.data[2, 0] = 5.0  # they predict what is not asked for
    assert probe.measure(model)["kl"] == 0.0
    model.table.data[1] = torch.tensor([0.7, 0.1, 0.1, 0.1]).log()
    assert probe.measure(model)["kl"] == pytest.approx(kl([0.7, 0.1, 0.1, 0.1], [0.25] * 4))


def test_the_probe_is_the_same_whatever_the_order_of_the_rows() -> None:
    data = [{"input_ids": [index % 2, index], "labels": 0} for index in range(200)]
    model = Lookup([[float(index)] * 2 for index in range(200)])
    probes = [DriftProbe(model, EncodedRows(order), stack) for order in (data, data[::-1])]
    assert probes[0].digest == probes[1].digest
    assert DriftProbe(model, EncodedRows(data[:PROBE_ROWS]), stack).digest != probes[0].digest


def test_a_model_that_answers_as_its_base_does_has_not_learned() -> None:
    model = Lookup([[0.0, 1.0], [1.0, 0.0]])
    probe = DriftProbe(model, rows(4), stack)
    with pytest.raises(NoLearningError, match="all 4 probe questions exactly as its base") as caught:
        probe.require_moved(model)
    assert caught.value.evidence["kind"] == "probe_unmoved"
    model.table.data[1, 0] = 1.0001
    probe.require_moved(model)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_prediction_that_is_not_finite_is_refused(value: float) -> None:
    model = Lookup([[0.0, 1.0], [1.0, 0.0]])
    probe = DriftProbe(model, rows(2), stack)
    model.table.data[0, 0] = value
    with pytest.raises(NonFiniteError, match=r"divergence from .* is nan"):
        probe.measure(model)


def test_measuring_draws_from_no_generator_and_leaves_the_mode(tmp_path: Path) -> None:
    base, split = build_tiny_bert(tmp_path / "base"), build_tiny_split(tmp_path / "split")
    settings = validate(Train, tiny_train_params(base)["train"], "train", InputError)
    recipe = SequenceClassification(base, LABELS, settings, StopRequest())
    model, data = recipe.build_model().model, recipe.encode(split / "validation.parquet")
    model.train()
    before = state()
    probe = DriftProbe(model, data, recipe.collator())
    assert probe.measure(model) == {"kl": 0.0, "probe": probe.digest}  # although dropout is on while it trains
    assert model.training
    assert state() == before


def state() -> Mapping[str, Any]:
    """Return the generators' states in a form that can be compared."""
    seen = capture()
    numbers = np.asarray(seen["numpy"][1])
    return {"python": random.getstate(), "numpy": numbers.tobytes(), "torch": seen["cpu"].numpy().tobytes()}
