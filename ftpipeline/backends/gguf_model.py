"""A base model that comes as one GGUF file, converted to the files that are trained from.

Weights are restored to fp32 one tensor after another. The bytes written depend on the file alone.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

from ftpipeline.backends import gguf_layout, gguf_tokenizer
from ftpipeline.backends.shards import Weight, write_shards
from ftpipeline.errors import InputError
from ftpipeline.steps.ports import ModelConverter

_SCALING = "llama.rope.scaling.type"


class GgufConverter(ModelConverter):
    """Converts a Llama in a GGUF file to config.json, safetensors and tokenizer files."""

    code_version = "1"

    def _convert(self, source: Path, out: Path) -> None:
        reader = GGUFReader(source)
        fields = {name: field.contents() for name, field in reader.fields.items()}
        names = {tensor.name: gguf_layout.torch_name(tensor.name) for tensor in reader.tensors}
        unknown = sorted(name for name, known in names.items() if known is None)
        if unknown:
            raise InputError(
                f"{source.name} holds {', '.join(unknown[:3])}, which no plain Llama has; give another model"
            )
        config = _config(source, fields, tied="output.weight" not in names)
        gguf_tokenizer.write_tokenizer(fields, config["max_position_embeddings"], out)
        (out / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        write_shards(_weights(reader, config), out)


def _config(source: Path, fields: Mapping[str, Any], *, tied: bool) -> dict[str, Any]:
    """Return the configuration that a file's fields state."""
    architecture = fields.get("general.architecture")
    if architecture != gguf_layout.ARCHITECTURE:
        raise InputError(f"{source.name} holds a model of type {architecture!r}; only Llama is read from GGUF")
    if fields.get(_SCALING, "none") != "none":
        raise InputError(f"{source.name} scales its positions by {fields[_SCALING]!r}; only plain positions are read")

    def stated(name: str) -> Any:
        try:
            return fields[f"{gguf_layout.ARCHITECTURE}.{name}"]
        except KeyError as error:
            raise InputError(f"{source.name} does not state {error}; give a complete GGUF file") from error

    heads = stated("attention.head_count")
    ids = {f"{name}_token_id": fields.get(f"tokenizer.ggml.{role}_token_id") for name, role in _ROLES.items()}
    return {name: index for name, index in ids.items() if index is not None} | {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(fields[gguf_tokenizer.TOKENS]),
        "hidden_size": stated("embedding_length"),
        "intermediate_size": stated("feed_forward_length"),
        "num_hidden_layers": stated("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": stated("attention.head_count_kv"),
        "head_dim": fields.get("llama.attention.key_length", stated("embedding_length") // heads),
        "hidden_act": "silu",
        "max_position_embeddings": stated("context_length"),
        "rms_norm_eps": stated("attention.layer_norm_rms_epsilon"),
        "rope_parameters": {"rope_type": "default", "rope_theta": fields.get("llama.rope.freq_base", 10000.0)},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
    }


_ROLES = {name: role for name, role in gguf_tokenizer.ROLES.items() if name != "unk"}
"""Special tokens that a Llama's configuration names."""


def _weights(reader: GGUFReader, config: Mapping[str, Any]) -> Iterator[tuple[str, Weight]]:
    for tensor in sorted(reader.tensors, key=lambda tensor: str(tensor.name)):
        name = str(gguf_layout.torch_name(tensor.name))
        shape = tuple(int(size) for size in reversed(tensor.shape))
        weight = dequantize(tensor.data, tensor.tensor_type).reshape(shape).astype(np.float32, copy=False)
        heads = gguf_layout.heads_of(name, config)
        yield name, weight if heads is None else gguf_layout.unpermuted(weight, heads)
