"""Put a trained adapter on its base model, and refuse one that does not fit it.

The libraries load an adapter whose keys do not fit without an error, and the outputs are then those of the base.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import torch
from peft import LoraConfig, PeftConfig, PeftModel, get_peft_model
from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel

from ftpipeline.backends.adapter import CONFIG_FILE, WEIGHTS_FILE
from ftpipeline.backends.quiet import attaching_quietly
from ftpipeline.errors import AdapterKeysError, BaseModelMismatchError, ExportCheckError
from ftpipeline.steps.base_pin import trained_on


def attach(base: PreTrainedModel, adapter: Path, untrained: Collection[str]) -> PeftModel:
    """Return `base` with the weights of the folder `adapter` on it, in evaluation mode.

    Args:
        base: the base model as a classifier.
        adapter: folder with the adapter's configuration and weights, as peft writes them.
        untrained: names of parameters that the base's files do not hold; the adapter must.

    Raises:
        AdapterKeysError: the adapter's weights are not those that the base and the configuration ask for.
        ExportCheckError: the adapter is incomplete, not a LoRA adapter, or not finite.
    """
    tensors = _tensors(adapter)
    with attaching_quietly():
        config = PeftConfig.from_pretrained(str(adapter))
        if not isinstance(config, LoraConfig):
            raise ExportCheckError(f"adapter is of type {config.peft_type}; only LoRA adapters are exported, train one")
        config.base_model_name_or_path = None  # the base's digest, which peft takes for a path
        model = get_peft_model(base, config)
        _check_keys(get_peft_model_state_dict(model, save_embedding_layers=False), tensors)
        _check_trained(untrained, tensors)
        set_peft_model_state_dict(model, tensors)
    model.eval()
    return model


def fitting_weights(model: PeftModel, adapter: Path) -> dict[str, Tensor]:
    """Return the weights of the folder `adapter`, which may take the place of those of `model`.

    Raises:
        BaseModelMismatchError: the adapter was trained on another base.
        AdapterKeysError: its keys, shapes or scale are not those of the model's adapter.
        ExportCheckError: the adapter is incomplete, or not finite.
    """
    tensors, own = _tensors(adapter), model.active_peft_config
    base = trained_on(adapter)
    if base != own.base_model_name_or_path:
        raise BaseModelMismatchError(
            f"adapter was trained on base model {base}, this one on {own.base_model_name_or_path}; use one base"
        )
    _check_keys(get_peft_model_state_dict(model, save_embedding_layers=False), tensors)
    alpha = json.loads((adapter / CONFIG_FILE).read_text(encoding="utf-8"))["lora_alpha"]
    if alpha != own.lora_alpha:
        raise AdapterKeysError(f"adapter has lora_alpha {alpha}, this one {own.lora_alpha}; train both with one")
    return tensors


def _tensors(adapter: Path) -> dict[str, Tensor]:
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        if not (adapter / name).is_file():
            raise ExportCheckError(f"adapter folder has no {name}; train again")
    tensors: dict[str, Tensor] = load_file(adapter / WEIGHTS_FILE)
    for name, tensor in sorted(tensors.items()):
        if not bool(torch.isfinite(tensor).all()):
            raise ExportCheckError(f"adapter weight {name} is not finite; the training diverged, train again")
    return tensors


def _check_keys(expected: Mapping[str, Tensor], actual: Mapping[str, Tensor]) -> None:
    missing, unexpected = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
    if missing or unexpected:
        raise AdapterKeysError(
            f"adapter does not fit the base model: {len(missing)} keys missing, {len(unexpected)} unexpected, "
            f"for example {(missing + unexpected)[0]}; export it with the base it was trained on"
        )
    for name in sorted(expected):
        if expected[name].shape != actual[name].shape:
            raise AdapterKeysError(
                f"adapter weight {name} has shape {tuple(actual[name].shape)}, base model and labels need "
                f"{tuple(expected[name].shape)}; export it with the base and labels it was trained on"
            )


def _check_trained(untrained: Collection[str], tensors: Mapping[str, Tensor]) -> None:
    """Refuse parameters that neither the base nor the adapter holds: they would be random numbers."""
    random = sorted(name for name in untrained if f"base_model.model.{name}" not in tensors)
    if random:
        raise AdapterKeysError(
            f"neither the base model nor the adapter holds {', '.join(random)}; "
            "name the layer in train.modules_to_save and train again"
        )
