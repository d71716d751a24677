"""Does a folder hold a whole causal model, and do its parts say the same of it? Pure: names, shapes and settings in."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ftpipeline.steps.tokenizer import TEMPLATE_FOLDERS
from ftpipeline.steps.weight_files import INDEX, SINGLE

GGUF_FILE = "model.gguf"

_ALWAYS = ("config.json", "tokenizer.json", "tokenizer_config.json")
_TEMPLATES = ("chat_template.jinja", "chat_template.json")
_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"
_LAYER = "model.layers."


def missing_files(names: Collection[str], *, template_in_config: bool = False) -> list[str]:
    """Return what a folder lacks to be served as a causal model, sorted; empty when it is complete.

    Args:
        names: files of the folder that are not empty, as POSIX paths relative to it.
        template_in_config: whether tokenizer_config.json holds the chat template.
    """
    missing = [name for name in _ALWAYS if name not in names]
    if not {SINGLE, INDEX, GGUF_FILE} & {*names}:
        missing.append(SINGLE)
    in_folder = any(name.startswith(f"{folder}/") for name in names for folder in TEMPLATE_FOLDERS)
    if not (template_in_config or in_folder or any(name in names for name in _TEMPLATES)):
        missing.append("a chat template")
    return sorted(missing)


@dataclass(frozen=True)
class ModelParts:
    """What the parts of a model say of it.

    Attributes:
        config: content of config.json.
        shapes: shape of each weight, by its name in transformers.
        tokens: number of tokens of the tokenizer.
        end_token: id of the tokenizer's token that ends a text; None if it has none.
        head_is_embedding: whether the output's weights equal the input embeddings; None where only one is stored.
        weight_type: how the weights are stored, such as float32.
    """

    config: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    tokens: int
    end_token: int | None
    head_is_embedding: bool | None
    weight_type: str = "float32"


def disagreements(parts: ModelParts) -> list[str]:
    """Return everything that the parts of a model say differently of it; empty when they agree."""
    return [*_vocabulary(parts), *_ends(parts), *_ties(parts), *_sizes(parts), *_types(parts)]


def _vocabulary(parts: ModelParts) -> Iterator[str]:
    stated = parts.config.get("vocab_size")
    for name in (_EMBEDDING, _HEAD):
        if name in parts.shapes and parts.shapes[name][0] != stated:
            yield f"vocab_size is {stated}, {name} has {parts.shapes[name][0]} rows"
    if isinstance(stated, int) and parts.tokens > stated:
        yield f"vocab_size is {stated}, the tokenizer has {parts.tokens} tokens"


def _ends(parts: ModelParts) -> Iterator[str]:
    stated = parts.config.get("eos_token_id")
    ids = stated if isinstance(stated, list) else [stated]
    if parts.end_token not in ids:
        yield f"eos_token_id is {stated}, the tokenizer ends a text with {parts.end_token}"


def _ties(parts: ModelParts) -> Iterator[str]:
    tied = parts.config.get("tie_word_embeddings", False)
    if tied and parts.head_is_embedding is False:
        yield f"tie_word_embeddings is true, {_HEAD} differs from {_EMBEDDING} and would be lost"
    if not tied and _HEAD not in parts.shapes:
        yield f"tie_word_embeddings is false, there is no {_HEAD}"


def _sizes(parts: ModelParts) -> Iterator[str]:
    layers = {name.removeprefix(_LAYER).partition(".")[0] for name in parts.shapes if name.startswith(_LAYER)}
    stated = parts.config.get("num_hidden_layers", len(layers))
    if stated != len(layers):
        yield f"num_hidden_layers is {stated}, there are weights of {len(layers)} layers"
    hidden = parts.config.get("hidden_size")
    width = parts.shapes.get(_EMBEDDING, (0, 0))[1]
    if hidden is not None and hidden != width:
        yield f"hidden_size is {hidden}, {_EMBEDDING} is {width} wide"


def _types(parts: ModelParts) -> Iterator[str]:
    if "int" in parts.weight_type and not parts.config.get("quantization_config"):
        yield f"weights are {parts.weight_type}, there is no quantization_config"
