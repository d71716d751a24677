"""The model that is trained: a frozen base, a LoRA adapter on named layers, and the layers that are saved whole."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from torch import nn
from transformers import PreTrainedModel

from ftpipeline.backends.classifier import load_classifier
from ftpipeline.backends.quiet import attaching_quietly
from ftpipeline.digest import Digest
from ftpipeline.errors import DeadTargetError, InputError
from ftpipeline.schema import Train
from ftpipeline.steps.base_pin import base_tree
from ftpipeline.steps.lora_targets import TargetMatch, match_targets

_HEADS = ("classifier", "score")
"""The layers of a classifier that peft trains and saves unasked."""


@dataclass(frozen=True)
class LoraModel:
    """A model that is ready to be trained.

    Attributes:
        model: the base with its adapter.
        matches: target name to the number of layers it matched.
        partial: target name to the layers it matched, where these are not all of their kind.
    """

    model: PeftModel
    matches: Mapping[str, int]
    partial: Mapping[str, str]


def build(base_model: Path, labels: Sequence[str], settings: Train) -> LoraModel:
    """Load `base_model` as a classifier of `labels`, in fp32, and add the adapter; seed the generators before.

    Raises:
        InputError: the folder is no model that can classify, or lacks weights that no adapter would keep.
        DeadTargetError: a target or a module to save matches nothing, or is no layer that LoRA can adapt.
    """
    base, missing = load_classifier(base_model, labels)
    _refuse_lost_weights(missing, (*_HEADS, *settings.modules_to_save))
    return attach_new(base, settings, TaskType.SEQ_CLS, base_tree(base_model))


def attach_new(base: PreTrainedModel, settings: Train, task: TaskType, tree: Digest) -> LoraModel:
    """Add a fresh adapter to a loaded base model.

    Args:
        base: the loaded model.
        settings: the adapter's shape and the modules to save.
        task: what peft calls the task.
        tree: digest of the base model's tree; the adapter names its base by it.

    Raises:
        DeadTargetError: a target or a module to save matches nothing, or is no layer that LoRA can adapt.
    """
    modules, known = [path for path, _ in base.named_modules()], _adaptable(base)
    matches = match_targets("LoRA target", settings.lora.target_modules, modules, known)
    match_targets("module to save", settings.modules_to_save, modules, known)
    model = _attach(base, settings, task)
    for config in model.peft_config.values():
        config.base_model_name_or_path = tree
    return LoraModel(model, {match.name: match.count for match in matches}, _partial(matches))


def _partial(matches: Iterable[TargetMatch]) -> dict[str, str]:
    return {match.name: match.coverage for match in matches if match.skipped}


def _adaptable(model: nn.Module) -> list[str]:
    return sorted({path.rpartition(".")[2] for path, module in model.named_modules() if isinstance(module, nn.Linear)})


def _attach(base: PreTrainedModel, settings: Train, task: TaskType) -> PeftModel:
    config = LoraConfig(
        task_type=task,
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
        raise DeadTargetError(f"LoRA cannot adapt this base model ({error}); change lora.target_modules") from error


def _refuse_lost_weights(missing: Iterable[str], saved: Iterable[str]) -> None:
    """Refuse random weights that would not be in the adapter: the exported model would hold other random ones."""
    modules = [f".{module}." for module in saved]
    lost = sorted(name for name in missing if not any(module in f".{name}" for module in modules))
    if lost:
        raise InputError(
            f"base model lacks the weights {', '.join(lost[:5])}, or has them in another size; "
            "name their module in train.modules_to_save"
        )
