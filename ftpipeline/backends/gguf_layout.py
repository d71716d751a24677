"""A Llama in a GGUF file: how its tensors are called there, and how its attention weights are ordered.

Law: `unpermuted(permuted(weight, heads), heads) == weight`, and `torch_name(gguf_name(name)) == name`.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARCHITECTURE = "llama"

_MODEL: Mapping[str, str] = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
_LAYER: Mapping[str, str] = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_TORCH_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)\.weight")
_GGUF_LAYER = re.compile(r"blk\.(\d+)\.(.+)\.weight")
_FROM_MODEL = {short: name for name, short in _MODEL.items()}
_FROM_LAYER = {short: name for name, short in _LAYER.items()}
_HEADS: Mapping[str, str] = {"self_attn.q_proj": "num_attention_heads", "self_attn.k_proj": "num_key_value_heads"}


def gguf_name(name: str) -> str | None:
    """Return what GGUF calls a weight of a Llama; None if it has no such weight."""
    layer = _TORCH_LAYER.fullmatch(name)
    if layer is not None:
        return f"blk.{layer[1]}.{_LAYER[layer[2]]}.weight" if layer[2] in _LAYER else None
    short = _MODEL.get(name.removesuffix(".weight"))
    return f"{short}.weight" if short is not None and name.endswith(".weight") else None


def torch_name(name: str) -> str | None:
    """Return what transformers calls a tensor of a Llama's GGUF file; None if it has no such weight."""
    layer = _GGUF_LAYER.fullmatch(name)
    if layer is not None:
        return f"model.layers.{layer[1]}.{_FROM_LAYER[layer[2]]}.weight" if layer[2] in _FROM_LAYER else None
    long = _FROM_MODEL.get(name.removesuffix(".weight"))
    return f"{long}.weight" if long is not None and name.endswith(".weight") else None


def heads_of(name: str, config: Mapping[str, Any]) -> int | None:
    """Return the number of heads that a weight's rows are reordered by; None for one that is kept as it is.

    Args:
        name: what transformers calls the weight.
        config: the model's configuration.
    """
    layer = _TORCH_LAYER.fullmatch(name)
    field = _HEADS.get(layer[2]) if layer is not None else None
    return None if field is None else int(config[field])


def permuted(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Reorder the rows of a query or key weight: rotary pairs stand half a head apart here, side by side in GGUF."""
    pairs = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def unpermuted(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo `permuted`."""
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, *weight.shape[1:])
    return pairs.swapaxes(1, 2).reshape(weight.shape)
