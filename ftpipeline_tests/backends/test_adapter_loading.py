"""An adapter that does not fit its base model is refused, although the libraries would load it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ftpipeline.backends.adapter import CONFIG_FILE
from ftpipeline.backends.merge import merge
from ftpipeline.errors import ExportCheckError
from ftpipeline_tests.backends.tiny_adapter import edit_weights
from ftpipeline_tests.tiny_model import LABELS

Tensors = dict[str, Tensor]


def rename_first(tensors: Tensors) -> None:
    name = min(tensors)
    tensors["foreign." + name] = tensors.pop(name)


def drop_one(tensors: Tensors) -> None:
    del tensors[min(name for name in tensors if "lora_A" in name)]


def add_one(tensors: Tensors) -> None:
    tensors["base_model.model.bert.encoder.layer.9.attention.self.query.lora_A.weight"] = torch.ones(4, 32)


def put_nan(tensors: Tensors) -> None:
    tensors[min(tensors)].view(-1)[0] = torch.nan


def drop_whole_head(tensors: Tensors) -> None:
    for name in [name for name in tensors if "classifier" in name]:
        del tensors[name]


def drop_head(tensors: Tensors) -> None:
    del tensors["base_model.model.classifier.weight"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (rename_first, "1 keys missing, 1 unexpected"),
        (drop_one, "1 keys missing, 0 unexpected"),
        (add_one, "0 keys missing, 1 unexpected"),
        (drop_head, r"1 keys missing.*classifier\.weight"),
        (put_nan, "not finite"),
    ],
)
def test_an_adapter_whose_weights_do_not_fit_is_refused(
    base_model: Path, adapter: Path, damage: Callable[[Tensors], None], message: str
) -> None:
    edit_weights(adapter, damage)
    with pytest.raises(ExportCheckError, match=message):
        merge(base_model, adapter, LABELS)


def test_an_adapter_of_other_labels_is_refused(base_model: Path, adapter: Path) -> None:
    with pytest.raises(ExportCheckError, match=r"classifier.* has shape \(3\b"):
        merge(base_model, adapter, (*LABELS, "returns"))


def test_a_head_that_was_never_saved_is_refused(base_model: Path, adapter: Path) -> None:
    config = adapter / CONFIG_FILE
    text = (
        config.read_text(encoding="utf-8").replace('"classifier"', '"pooler"').replace("SEQ_CLS", "FEATURE_EXTRACTION")
    )
    config.write_text(text, encoding="utf-8")
    edit_weights(adapter, drop_whole_head)
    with pytest.raises(ExportCheckError, match=r"neither .* holds classifier\.bias, classifier\.weight"):
        merge(base_model, adapter, LABELS)


def test_an_adapter_without_its_configuration_is_refused(base_model: Path, adapter: Path) -> None:
    (adapter / CONFIG_FILE).unlink()
    with pytest.raises(ExportCheckError, match=CONFIG_FILE):
        merge(base_model, adapter, LABELS)
