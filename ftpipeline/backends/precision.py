"""The number format that a training computes in; its weights are kept in fp32 whatever it is."""

from typing import Literal

import torch

from ftpipeline.errors import InputError

Precision = Literal["fp32", "bf16", "fp16"]


def resolve(declared: str) -> Precision:
    """Return the format that `train.precision` stands for on this machine.

    `auto` is bf16 on a GPU that computes in it, and fp32 otherwise.

    Raises:
        InputError: the machine cannot compute in the declared one.
    """
    on_gpu = torch.cuda.is_available()
    has_bf16 = on_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    match declared:
        case "auto":
            return "bf16" if has_bf16 else "fp32"
        case "fp32":
            return "fp32"
        case "bf16" if has_bf16 or not on_gpu:
            return "bf16"
        case "fp16" if on_gpu:
            return "fp16"
    where = "this GPU" if on_gpu else "a CPU"
    raise InputError(f"train.precision {declared} cannot be trained in on {where}; set it to auto or fp32")
