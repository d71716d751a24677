"""An adapter that does not fit its base model is refused, although the libraries would load it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ftpipeline.backends.adapter import CONFIG_FILE
from ftpipeline.backends.merge import merge
from ftpipeline.errors import AdapterKeysError, BaseModelMismatchError, ExportCheckError, FtpipelineError
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
    ("damage", "error", "message"),
    [
        (rename_first, AdapterKeysError, "1 keys missing, 1 unexpected"),
        (drop_one, AdapterKeysError, "1 keys missing, 0 unexpected"),
        (add_one, AdapterKeysError, "0 keys missing, 1 unexpected"),
        (drop_head, AdapterKeysError, r"1 keys missing.*classifier\.weight"),
        (put_nan, ExportCheckError, "not finite"),
    ],
)
def test_an_adapter_whose_weights_do_not_fit_is_refused(
    base_model: Path, adapter: Path, damage: Callable[[Tensors], None], error: type[FtpipelineError], message: str
) -> None:
    edit_weights(adapter, damage)
    with pytest.raises(error, match=message):
        merge(base_model, adapter, LABELS)


def test_an_adapter_of_other_labels_is_refused(base_model: Path, adapter: Path) -> None:
    with pytest.raises(AdapterKeysError, match=r"classifier.* has shape \(3\b"):
        merge(base_model, adapter, (*LABELS, "returns"))


def test_a_head_that_was_never_saved_is_refused(base_model: Path, adapter: Path) -> None:
    config = adapter / CONFIG_FILE
    text = (
        config.read_text(encoding="utf-8").replace('"classifier"', '"pooler"').replace("SEQ_CLS", "FEATURE_EXTRACTION")
    )
    config.write_text(text, encoding="utf-8")
    edit_weights(adapter, drop_whole_head)
    with pytest.raises(AdapterKeysError, match=r"neither .* holds classifier\.bias, classifier\.weight"):
        merge(base_model, adapter, LABELS)


def test_an_adapter_without_its_configuration_is_refused(base_model: Path, adapter: Path) -> None:
    (adapter / CONFIG_FILE).unlink()
    with pytest.raises(BaseModelMismatchError, match=CONFIG_FILE):
        merge(base_model, adapter, LABELS)


def test_an_adapter_of_another_base_of_equal_shapes_is_refused_before_either_is_loaded(
    base_model: Path, adapter: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(base_model, tmp_path / "other"))
    weights = load_file(other / "model.safetensors")
    save_file({name: weight + 0.01 for name, weight in weights.items()}, other / "model.safetensors")
    edit_weights(adapter, rename_first)  # would be refused as soon as it were loaded
    with pytest.raises(BaseModelMismatchError, match=r"was trained on base model sha256:.*use the base"):
        merge(other, adapter, LABELS)
