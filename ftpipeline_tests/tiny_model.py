"""A BERT of two layers with random weights, and what it takes to train it: small enough to be built in every test.

Neither torch nor transformers is loaded; the same arguments give the same bytes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from ftpipeline.digest import hex_of
from ftpipeline.steps.tokenizer import tokenizer_sha256

HIDDEN, LAYERS, INNER, POSITIONS = 32, 2, 64, 64
LABELS = ("billing", "login", "shipping")
WORDS = (
    *("invoice", "refund", "charge", "card", "payment"),
    *("password", "account", "reset", "locked", "email"),
    *("parcel", "delivery", "courier", "tracking", "late"),
    *("my", "the", "is", "please", "help", "with", "a", "not"),
)
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def build_tiny_bert(folder: Path, *, words: Sequence[str] = WORDS) -> Path:
    """Write a base model whose vocabulary is `words` and single characters; return `folder`."""
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


def build_tiny_split(folder: Path, *, rows: int = 48, labels: Sequence[str] = LABELS) -> Path:
    """Write a clean split of separable rows, two thirds of them for training; return `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pyarrow.Table.from_pylist([_row(index, labels) for index in range(rows)])
    cut = rows * 2 // 3
    pyarrow.parquet.write_table(table.slice(0, cut), folder / "train.parquet")
    pyarrow.parquet.write_table(table.slice(cut), folder / "validation.parquet")
    _write_json(folder / "leakage.json", {"verdict": "clean"})
    return folder


def tiny_train_params(base_model: Path, **train: Any) -> dict[str, Any]:
    """Return the train step's parameters for a tiny model; keyword arguments replace fields of `train`."""
    settings = {
        "seed": 7,
        "lr": 0.03,
        "epochs": None,
        "max_steps": 40,
        "batch_size": 8,
        "max_length": 16,
        "scheduler": "cosine",
        "warmup_steps": 2,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "modules_to_save": ["classifier", "pooler"],
        "lora": {"r": 4, "lora_alpha": 8, "lora_dropout": 0.05, "target_modules": ["query", "key", "value"]},
    }
    return {
        "task": "sequence_classification",
        "labels": list(LABELS),
        "tokenizer_sha256": hex_of(tokenizer_sha256(base_model)),
        "train": settings | train,
    }


def _row(index: int, labels: Sequence[str]) -> dict[str, str]:
    label = index % len(labels)
    own = WORDS[5 * (label % len(LABELS)) :][:5]
    text = f"{own[index % 5]} {own[(index // 5 + 1) % 5]} please help with my {own[(index // 3) % 5]}"
    return {"id": f"T-{index:04d}", "text": text, "label": labels[label]}


def _write_tokenizer(folder: Path, words: Sequence[str]) -> int:
    """Write the tokenizer files and return the size of the vocabulary."""
    pieces = [*_SPECIAL, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *words]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    tokenizer.add_special_tokens(list(_SPECIAL))
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    config = roles | {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": POSITIONS}
    _write_json(folder / "tokenizer_config.json", config)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary), encoding="utf-8")
    return len(vocabulary)


def _weights(vocabulary: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the tensors of a BertModel: normal weights of deviation 0.1, zero biases, unit norms."""
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
