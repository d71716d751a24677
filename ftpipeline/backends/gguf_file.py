"""A merged Llama written as one GGUF file, its matrices in Q8_0.

Fields and tensors are written in a fixed order and nothing of time, place or tools is: equal models give equal bytes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFWriter, LlamaFileType
from gguf.quants import dequantize, quantize
from numpy.typing import NDArray

from ftpipeline.backends import gguf_layout
from ftpipeline.backends.gguf_tokenizer import tokenizer_fields
from ftpipeline.backends.quiet import writing_gguf_quietly
from ftpipeline.backends.shards import Weight, read_weights
from ftpipeline.errors import ExportCheckError
from ftpipeline.steps.weight_files import model_tensors

_Q8_0, _F32 = GGMLQuantizationType.Q8_0, GGMLQuantizationType.F32
_BLOCK = GGML_QUANT_SIZES[_Q8_0][0]
_QUANTIZATION_VERSION = 2


def write_gguf(merged: Path, out: Path) -> dict[str, float]:
    """Write the model of a folder to the file `out`.

    Args:
        merged: config.json, fp32 safetensors and tokenizer files.
        out: the file.

    Returns:
        Name of each quantized weight to the largest relative error of one of its rows; 0.0 is exact.

    Raises:
        ExportCheckError: the model is no plain Llama, or its tokenizer has no form in GGUF.
    """
    config = json.loads((merged / "config.json").read_text(encoding="utf-8"))
    _check_config(config)
    shapes = {name: tensor.shape for name, tensor in model_tensors(merged).items()}
    with writing_gguf_quietly():
        writer = GGUFWriter(out, gguf_layout.ARCHITECTURE)
        _add_fields(writer, config, merged)
        for name in sorted(shapes):
            _announce(writer, name, shapes[name])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        errors = _write_weights(writer, merged, config)
        writer.close()
    return errors


def _write_weights(writer: GGUFWriter, merged: Path, config: Mapping[str, Any]) -> dict[str, float]:
    """Write one tensor after another, in the order they were announced in."""
    errors = {}
    for name, weight in read_weights(merged):
        stored = _stored(name, weight, config)
        writer.write_tensor_data(stored)
        if stored.dtype != np.float32:
            errors[name] = _row_error(_in_order(name, weight, config), dequantize(stored, _Q8_0))
    return errors


def _check_config(config: Mapping[str, Any]) -> None:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    wanted = {
        "model_type": (config.get("model_type"), "llama"),
        "hidden_act": (config.get("hidden_act", "silu"), "silu"),
        "attention_bias": (config.get("attention_bias", False), False),
        "mlp_bias": (config.get("mlp_bias", False), False),
        "rope_type": (rope.get("rope_type", "default"), "default"),
    }
    for name, (found, known) in wanted.items():
        if found != known:
            raise ExportCheckError(
                f"config.json has {name} {found!r}, GGUF is written for {known!r} only; set export.quantize to none"
            )


def _add_fields(writer: GGUFWriter, config: Mapping[str, Any], folder: Path) -> None:
    rope = config.get("rope_parameters") or {}
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(_QUANTIZATION_VERSION)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config.get("num_key_value_heads") or config["num_attention_heads"])
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0))
    writer.add_layer_norm_rms_eps(float(config["rms_norm_eps"]))
    writer.add_vocab_size(config["vocab_size"])
    for name, value in tokenizer_fields(folder, config["vocab_size"], config).items():
        _add(writer, name, value)
    writer.add_add_bos_token(False)


def _add(writer: GGUFWriter, name: str, value: str | int | list[Any]) -> None:
    if isinstance(value, str):
        writer.add_string(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    else:
        writer.add_array(name, value)


def _announce(writer: GGUFWriter, name: str, shape: tuple[int, ...]) -> None:
    short = gguf_layout.gguf_name(name)
    if short is None:
        raise ExportCheckError(f"weight {name} has no place in the GGUF file of a Llama; set export.quantize to none")
    if _is_quantized(shape):
        block, size = GGML_QUANT_SIZES[_Q8_0]
        row = shape[1] // block * size
        writer.add_tensor_info(short, (shape[0], row), np.dtype(np.uint8), shape[0] * row, raw_dtype=_Q8_0)
    else:
        writer.add_tensor_info(short, shape, np.dtype(np.float32), 4 * int(np.prod(shape)), raw_dtype=_F32)


def _is_quantized(shape: tuple[int, ...]) -> bool:
    """Matrices are, of which every row is whole blocks; norms are not."""
    return len(shape) == 2 and shape[1] % _BLOCK == 0


def _stored(name: str, weight: Weight, config: Mapping[str, Any]) -> NDArray[Any]:
    ordered = _in_order(name, weight, config)
    return quantize(ordered, _Q8_0) if _is_quantized(weight.shape) else ordered


def _in_order(name: str, weight: Weight, config: Mapping[str, Any]) -> Weight:
    heads = gguf_layout.heads_of(name, config)
    return weight if heads is None else np.ascontiguousarray(gguf_layout.permuted(weight, heads))


def _row_error(weight: Weight, restored: Weight) -> float:
    norms = np.linalg.norm(weight, axis=1)
    errors = np.linalg.norm(weight - restored, axis=1)
    return float(np.max(errors[norms > 0] / norms[norms > 0], initial=0.0))


def gguf_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of a GGUF file, by the name that transformers has for it."""
    return {
        gguf_layout.torch_name(tensor.name) or tensor.name: tuple(int(size) for size in reversed(tensor.shape))
        for tensor in GGUFReader(path).tensors
    }
