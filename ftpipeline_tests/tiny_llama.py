"""A Llama of two layers with random weights and a byte-level tokenizer: small enough to be built in every test.

Neither torch nor transformers is loaded; the same arguments give the same bytes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from ftpipeline_tests.tiny_model import LABELS, WORDS

HIDDEN, LAYERS, INNER, POSITIONS = 64, 2, 96, 256
HEADS, KEY_VALUE_HEADS = 4, 2
HEAD = HIDDEN // HEADS
END = "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_SPECIAL = ("<|endoftext|>", "<|im_start|>", END)


def build_tiny_llama(folder: Path, *, tied: bool = True, words: Sequence[str] = (*WORDS, *LABELS)) -> Path:
    """Write a base model whose tokenizer merges the letters of `words`; return `folder`.

    Args:
        folder: made if it is missing.
        tied: whether the input embeddings are the output's too.
        words: are few tokens each, alone and after a blank; all else is single bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = _write_tokenizer(folder, words)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_VALUE_HEADS,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
    }
    _write_json(folder / "config.json", config)
    save_file(dict(_weights(vocabulary, tied)), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _write_tokenizer(folder: Path, words: Sequence[str]) -> int:
    """Write the tokenizer files and return the size of the vocabulary; padding and end of text are one token."""
    letters = sorted(ByteLevel.alphabet())
    pieces, merges = [*_SPECIAL, *letters], []
    for word in words:
        for spelling in (word, f"Ġ{word}"):
            for end in range(1, len(spelling)):
                merge = spelling[:end], spelling[end]
                if "".join(merge) not in pieces:
                    pieces.append("".join(merge))
                    merges.append(merge)
    tokenizer = Tokenizer(BPE({piece: index for index, piece in enumerate(pieces)}, merges))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in _SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {"bos_token": _SPECIAL[1], "eos_token": END, "pad_token": END, "unk_token": _SPECIAL[0]}
    more = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": POSITIONS}
    _write_json(folder / "tokenizer_config.json", roles | more)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return len(pieces)


def _weights(vocabulary: int, tied: bool) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the tensors of a LlamaForCausalLM: normal weights of deviation 0.1, unit norms."""
    generator = np.random.default_rng(0)
    for name, shape in _shapes(vocabulary, tied).items():
        yield name, generator.normal(0.0, 0.1, shape).astype(np.float32)
    layers = [f"model.layers.{number}." for number in range(LAYERS)]
    for norm in (
        "model.norm",
        *(f"{layer}{name}_layernorm" for layer in layers for name in ("input", "post_attention")),
    ):
        yield f"{norm}.weight", np.ones(HIDDEN, np.float32)


def _shapes(vocabulary: int, tied: bool) -> Mapping[str, tuple[int, int]]:
    shapes = {"model.embed_tokens.weight": (vocabulary, HIDDEN)}
    if not tied:
        shapes["lm_head.weight"] = (vocabulary, HIDDEN)
    for layer in (f"model.layers.{number}" for number in range(LAYERS)):
        attention = {"q": HEADS * HEAD, "k": KEY_VALUE_HEADS * HEAD, "v": KEY_VALUE_HEADS * HEAD, "o": HIDDEN}
        shapes |= {f"{layer}.self_attn.{name}_proj.weight": (rows, HIDDEN) for name, rows in attention.items()}
        shapes |= {f"{layer}.mlp.{name}_proj.weight": (INNER, HIDDEN) for name in ("gate", "up")}
        shapes |= {f"{layer}.mlp.down_proj.weight": (HIDDEN, INNER)}
    return shapes


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
