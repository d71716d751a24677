"""A LoRA adapter with random weights for the tiny base model, as peft writes it; nothing is trained."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from peft import LoraConfig, TaskType, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from ftpipeline.backends.adapter import WEIGHTS_FILE
from ftpipeline.backends.quiet import attaching_quietly, loading_quietly
from ftpipeline.steps.base_pin import base_tree


def build_tiny_adapter(folder: Path, base_model: Path, labels: Sequence[str], *, scale: float = 0.5) -> Path:
    """Write an adapter whose weights are normal with deviation `scale`; 0 is one that was never trained."""
    with loading_quietly(), attaching_quietly():
        base = AutoModelForSequenceClassification.from_pretrained(base_model, num_labels=len(labels))
        config = LoraConfig(
            task_type=TaskType.SEQ_CLS,
            r=4,
            lora_alpha=8,
            target_modules=["query", "key", "value"],
            modules_to_save=["classifier", "pooler"],
        )
        model = get_peft_model(base, config)
        generator = torch.Generator().manual_seed(0)
        for _, weight in sorted(model.named_parameters()):
            if weight.requires_grad and scale:
                weight.data = torch.randn(weight.shape, generator=generator) * scale
        model.peft_config["default"].base_model_name_or_path = base_tree(base_model)
        model.save_pretrained(str(folder), save_embedding_layers=False)
    return folder


def edit_weights(adapter: Path, edit: Callable[[dict[str, Tensor]], None]) -> None:
    """Change the tensors of an adapter folder in place."""
    tensors = load_file(adapter / WEIGHTS_FILE)
    edit(tensors)
    save_file(tensors, adapter / WEIGHTS_FILE)
