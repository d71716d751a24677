"""A byte-level BPE tokenizer as the fields of a GGUF file, and as the files of transformers.

GGUF names how a text is cut before the pairs are merged, tokenizer.json spells it; only ways that are known in both
are taken, because another one gives other tokens without an error.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gguf import TokenType
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, PreTokenizer
from tokenizers.pre_tokenizers import Sequence as InSequence

from ftpipeline.errors import ExportCheckError, InputError

Fields = dict[str, Any]

MODEL, PRE, TOKENS, TYPES, MERGES, TEMPLATE = (
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.merges",
    "tokenizer.chat_template",
)
ROLES: Mapping[str, str] = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
"""Special tokens: their name in transformers to that in GGUF."""

_BYTE_LEVEL_BPE = "gpt2"
_TEMPLATE_FILE = "chat_template.jinja"


def _cutters() -> dict[str, PreTokenizer]:
    """How a text is cut, by the name that llama.cpp has for it."""
    words = ByteLevel(add_prefix_space=False)
    return {"gpt-2": words, "smollm": InSequence([Digits(individual_digits=True), words])}


def write_tokenizer(fields: Mapping[str, Any], max_length: int, out: Path) -> None:
    """Write a GGUF file's tokenizer as tokenizer.json, tokenizer_config.json and, if there is one, the chat template.

    Args:
        fields: the file's fields.
        max_length: tokens that the model can read.
        out: folder.

    Raises:
        InputError: the tokenizer is of a kind that is not known here.
    """
    kind, pre = fields.get(MODEL), fields.get(PRE)
    cutters = _cutters()
    if kind != _BYTE_LEVEL_BPE or pre not in cutters:
        raise InputError(
            f"tokenizer of the GGUF file is {kind!r} with pre-tokenizer {pre!r}; known are {_BYTE_LEVEL_BPE!r} with "
            f"{', '.join(cutters)}: give the model in the transformers format"
        )
    tokens: Sequence[str] = fields[TOKENS]
    merges = [tuple(merge.split(" ")) for merge in fields[MERGES]]
    tokenizer = Tokenizer(BPE({token: index for index, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = cutters[pre]
    tokenizer.decoder = ByteLevelDecoder()
    kinds = list(zip(tokens, fields[TYPES], strict=True))
    for special, kind_id in ((True, TokenType.CONTROL), (False, TokenType.USER_DEFINED)):
        added = [AddedToken(token, special=special, normalized=False) for token, kind in kinds if kind == kind_id]
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)(added)
    tokenizer.save(str(out / "tokenizer.json"))
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length}
    for name, role in ROLES.items():
        index = fields.get(f"tokenizer.ggml.{role}_token_id")
        if index is not None:
            config[f"{name}_token"] = tokens[index]
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if TEMPLATE in fields:
        (out / _TEMPLATE_FILE).write_text(fields[TEMPLATE], encoding="utf-8")


def tokenizer_fields(folder: Path, vocabulary: int, config: Mapping[str, Any]) -> Fields:
    """Return the fields that say in a GGUF file what the tokenizer files of a folder say.

    Args:
        folder: with tokenizer.json and its companions.
        vocabulary: rows of the embedding; what has no token gets an unused one.
        config: the model's configuration, with the ids of special tokens.

    Raises:
        ExportCheckError: the tokenizer is of a kind that GGUF has no name for here, or larger than the embedding.
    """
    document = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    model = document["model"]
    if model.get("type") != "BPE" or document.get("normalizer") is not None:
        raise ExportCheckError("tokenizer is no byte-level BPE without a normalizer; set export.quantize to none")
    tokens, types = _tokens(document, vocabulary)
    fields: Fields = {
        MODEL: _BYTE_LEVEL_BPE,
        PRE: _name_of(document["pre_tokenizer"]),
        TOKENS: tokens,
        TYPES: types,
        MERGES: [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]],
    }
    for name, role in ROLES.items():
        index = config.get(f"{name}_token_id")
        if index is not None:
            fields[f"tokenizer.ggml.{role}_token_id"] = int(index)
    template = folder / _TEMPLATE_FILE
    if template.is_file():
        fields[TEMPLATE] = template.read_text(encoding="utf-8")
    return fields


def _name_of(cutter: Any) -> str:
    for name, known in _cutters().items():
        reference = Tokenizer(BPE())
        reference.pre_tokenizer = known
        if _shape(json.loads(reference.to_str())["pre_tokenizer"]) == _shape(cutter):
            return name
    raise ExportCheckError(
        f"tokenizer cuts texts in a way that GGUF has no name for here ({cutter!s:.80}); set export.quantize to none"
    )


def _shape(cutter: Any) -> Any:
    """A pre-tokenizer without what changes offsets only."""
    if isinstance(cutter, dict):
        return {key: _shape(value) for key, value in cutter.items() if key != "trim_offsets"}
    return [_shape(value) for value in cutter] if isinstance(cutter, list) else cutter


def _tokens(document: Mapping[str, Any], vocabulary: int) -> tuple[list[str], list[int]]:
    known = {index: (token, TokenType.NORMAL) for token, index in document["model"]["vocab"].items()}
    for added in document["added_tokens"]:
        kind = TokenType.CONTROL if added["special"] else TokenType.USER_DEFINED
        known[added["id"]] = (added["content"], kind)
    if max(known) >= vocabulary:
        raise ExportCheckError(
            f"tokenizer has a token with the id {max(known)}, the model embeds {vocabulary}; use the model's own one"
        )
    full = [known.get(index, (f"[PAD{index}]", TokenType.UNUSED)) for index in range(vocabulary)]
    return [token for token, _ in full], [int(kind) for _, kind in full]
