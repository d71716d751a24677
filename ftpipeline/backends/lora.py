"""The model that is trained: a frozen base, a LoRA adapter on named layers, and the layers that are saved whole."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from torch import nn
from transformers import PreTrainedModel

from ftpipeline.backends.classifier import load_classifier
from ftpipeline.backends.quiet import attaching_quietly
from ftpipeline.errors import InputError, TrainingFailedError
from ftpipeline.schema import Train

_HEADS = ("classifier", "score")
"""The layers of a classifier that peft trains and saves unasked."""


@dataclass(frozen=True)
class LoraModel:
    """A classifier that is ready to be trained.

    Attributes:
        model: the base with its adapter.
        matches: target name to the number of layers it matched.
    """

    model: PeftModel
    matches: Mapping[str, int]


def build(base_model: Path, labels: Sequence[str], settings: Train) -> LoraModel:
    """Load `base_model` as a classifier of `labels`, in fp32, and add the adapter; seed the generators before.

    Raises:
        InputError: the folder is no model that can classify, or lacks weights that no adapter would keep.
        TrainingFailedError: a target or a module to save matches nothing, or is no layer that LoRA can adapt.
    """
    base, missing = load_classifier(base_model, labels)
    matches = _matches(base, "LoRA target", settings.lora.target_modules)
    _matches(base, "module to save", settings.modules_to_save)
    _refuse_lost_weights(missing, (*_HEADS, *settings.modules_to_save))
    return LoraModel(_attach(base, settings), matches)


def _matches(model: nn.Module, role: str, names: Iterable[str]) -> dict[str, int]:
    """Count the modules that each name matches, as peft does: the whole path or its last parts."""
    paths = [path for path, _ in model.named_modules()]
    counts = {name: sum(path == name or path.endswith(f".{name}") for path in paths) for name in names}
    if not all(counts.values()):
        found = ", ".join(f"{name}: {count}" for name, count in counts.items())
        known = ", ".join(_adaptable(model))
        raise TrainingFailedError(f"{role} matches nothing (matches: {found}); layers of this base model are {known}")
    return counts


def _adaptable(model: nn.Module) -> list[str]:
    return sorted({path.rpartition(".")[2] for path, module in model.named_modules() if isinstance(module, nn.Linear)})


def _attach(base: PreTrainedModel, settings: Train) -> PeftModel:
    config = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=settings.lora.r,
        lora_alpha=settings.lora.lora_alpha,
        lora_dropout=settings.lora.lora_dropout,
        target_modules=list(settings.lora.target_modules),
        modules_to_save=list(settings.modules_to_save),
    )
    try:
        with attaching_quietly():
            return get_peft_model(base, config)
    except ValueError as error:
        raise TrainingFailedError(f"LoRA cannot adapt this base model ({error}); change lora.target_modules") from error


def _refuse_lost_weights(missing: Iterable[str], saved: Iterable[str]) -> None:
    """Refuse random weights that would not be in the adapter: the exported model would hold other random ones."""
    modules = [f".{module}." for module in saved]
    lost = sorted(name for name in missing if not any(module in f".{name}" for module in modules))
    if lost:
        raise InputError(
            f"base model lacks the weights {', '.join(lost[:5])}; name their module in train.modules_to_save"
        )
