"""A BERT of two layers with random weights, for trainings that take seconds: it learns little, but it does learn.

The same arguments give the same bytes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HIDDEN, LAYERS, INNER, POSITIONS = 32, 2, 64, 64
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def write_tiny_bert(folder: Path, words: Sequence[str]) -> Path:
    """Write a base model whose vocabulary is `words` and single characters.

    Args:
        folder: made if it is missing.
        words: lower-case words; all others are spelled.

    Returns:
        The folder.
    """
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _write_tokenizer(folder, words)
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 2,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }
    _write_json(folder / "config.json", config)
    save_file(dict(_weights(vocabulary)), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _write_tokenizer(folder: Path, words: Sequence[str]) -> int:
    """Write the tokenizer files and return the size of the vocabulary."""
    pieces = [*_SPECIAL, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *words]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    text = json.dumps(_tokenizer(vocabulary), indent=2, ensure_ascii=False)
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    roles = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    config = roles | {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": POSITIONS}
    _write_json(folder / "tokenizer_config.json", config)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary), encoding="utf-8")
    return len(vocabulary)


def _tokenizer(vocabulary: Mapping[str, int]) -> dict[str, Any]:
    """Return the document that the library of tokenizers writes for a WordPiece vocabulary."""
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    first, last = (_placed("SpecialToken", token) for token in ("[CLS]", "[SEP]"))
    single = [first, _placed("Sequence", "A"), last]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocabulary[token], "content": token, **plain, "special": True} for token in _SPECIAL],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, _placed("Sequence", "B", 1), _placed("SpecialToken", "[SEP]", 1)],
            "special_tokens": {
                token: {"id": token, "ids": [vocabulary[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": dict(vocabulary),
        },
    }


def _placed(kind: str, name: str, segment: int = 0) -> dict[str, Any]:
    return {kind: {"id": name, "type_id": segment}}


def _weights(vocabulary: int) -> "Iterator[tuple[str, NDArray[np.float32]]]":
    """Yield the tensors of a BertModel: normal weights of deviation 0.1, zero biases, unit norms."""
    import numpy as np

    generator = np.random.default_rng(0)
    for name, shape in _shapes(vocabulary).items():
        yield f"{name}.weight", generator.normal(0.0, 0.1, shape).astype(np.float32)
        if "_embeddings" not in name:
            yield f"{name}.bias", np.zeros(shape[0], np.float32)
    layers = [f"encoder.layer.{number}" for number in range(LAYERS)]
    for name in ("embeddings", *(f"{layer}.{part}" for layer in layers for part in ("attention.output", "output"))):
        yield f"{name}.LayerNorm.weight", np.ones(HIDDEN, np.float32)
        yield f"{name}.LayerNorm.bias", np.zeros(HIDDEN, np.float32)


def _shapes(vocabulary: int) -> Mapping[str, tuple[int, int]]:
    sizes = {"word": vocabulary, "position": POSITIONS, "token_type": 2}
    shapes = {f"embeddings.{name}_embeddings": (size, HIDDEN) for name, size in sizes.items()}
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        shapes |= {f"{layer}.attention.self.{name}": (HIDDEN, HIDDEN) for name in ("query", "key", "value")}
        shapes |= {f"{layer}.attention.output.dense": (HIDDEN, HIDDEN)}
        shapes |= {f"{layer}.intermediate.dense": (INNER, HIDDEN), f"{layer}.output.dense": (HIDDEN, INNER)}
    return shapes | {"pooler.dense": (HIDDEN, HIDDEN)}


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
