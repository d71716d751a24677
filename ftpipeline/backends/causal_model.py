"""A causal model loaded in fp32, from its own folder and nothing else."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, PreTrainedModel

from ftpipeline.backends.quiet import loading_quietly, reading_gguf_quietly
from ftpipeline.errors import InputError


def load_causal(folder: Path, *, gguf: str | None = None) -> PreTrainedModel:
    """Return the causal model of a folder, in evaluation mode.

    Args:
        folder: with configuration and safetensors weights, or a GGUF file.
        gguf: name of the GGUF file to read; None for safetensors.

    Raises:
        InputError: the folder is no causal model, or its weights are not all that the model has.
    """
    how: Mapping[str, Any] = {"use_safetensors": True} if gguf is None else {"gguf_file": gguf}
    try:
        with loading_quietly(), nullcontext() if gguf is None else reading_gguf_quietly():
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                folder,
                local_files_only=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
                **how,
            )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        summary = " ".join(str(error).split())
        raise InputError(f"model cannot be loaded as a causal model ({summary:.300}); check its files") from error
    model, report = loaded
    odd = sorted(map(str, [*report["missing_keys"], *report["unexpected_keys"], *report["mismatched_keys"]]))
    if odd:
        raise InputError(f"weights of the model are not all that its configuration asks for: {', '.join(odd[:3])}")
    base: PreTrainedModel = model.eval()
    return base
