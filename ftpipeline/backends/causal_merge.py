"""Merge a LoRA adapter into a causal model, one tensor after another, and prove that nothing else changed.

The merge is done in fp32 by the adapter's own numbers, weight + scale * B @ A, so that only one tensor and one output
file are held in memory; then the logits of base and adapter, and those of the written model, are compared.
"""

import gc
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from ftpipeline.backends.adapter import CONFIG_FILE as ADAPTER_CONFIG
from ftpipeline.backends.adapter import WEIGHTS_FILE as ADAPTER_WEIGHTS
from ftpipeline.backends.adapter_loading import attach
from ftpipeline.backends.causal_model import load_causal
from ftpipeline.backends.merge import logit_difference
from ftpipeline.backends.served_files import copy_tokenizer
from ftpipeline.backends.shards import SHARD_BYTES, Weight, write_shards
from ftpipeline.errors import ExportCheckError
from ftpipeline.records import Facts
from ftpipeline.steps.base_pin import check_base
from ftpipeline.steps.weight_files import read_header, weight_files

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"
_PREFIX = "base_model.model."
_PLAIN = {"use_rslora": False, "use_dora": False, "bias": "none", "rank_pattern": {}, "alpha_pattern": {}}
"""What an adapter's configuration must say for `weight + scale * B @ A` to be all of it."""
_PROBE_TOKENS = 16
_DROPPED = ("_name_or_path", "transformers_version", "torch_dtype", "quantization_config")


def merge_causal(base_model: Path, adapter: Path, out: Path, limit: int = SHARD_BYTES) -> Facts:
    """Write the merged model as fp32 safetensors, with configuration and the base's tokenizer files.

    Args:
        base_model: folder of the base model.
        adapter: folder of the adapter.
        out: folder, made if it is missing.
        limit: bytes of weights a file.

    Returns:
        `max_logit_difference` to base and adapter, `merge_delta_norm` (Frobenius), and `weight_files`.

    Raises:
        BaseModelMismatchError: the adapter was trained on another base; nothing is loaded.
        AdapterKeysError: keys or shapes of the adapter do not fit the base.
        InputError: the base is no causal model.
        ExportCheckError: the adapter is of another kind, a weight is not finite, the merge changed nothing, or it
            changed the answers.
    """
    check_base(base_model, adapter)
    model = attach(load_causal(base_model), adapter, ())
    expected = _probe_logits(model)
    del model
    gc.collect()
    out.mkdir(parents=True, exist_ok=True)
    merge = _Merge.read(base_model, adapter)
    files = write_shards(merge.weights(), out, limit)
    if merge.squares == 0.0:
        raise ExportCheckError("merging the adapter changed no weight of the base model; train it for at least a step")
    _write_config(merge.config, out)
    copy_tokenizer(base_model, out)
    difference = logit_difference("merging", expected, _probe_logits(load_causal(out)))
    return {"max_logit_difference": difference, "merge_delta_norm": merge.squares**0.5, "weight_files": files}


def _probe_logits(model: Any) -> Tensor:
    ids = (torch.arange(_PROBE_TOKENS) * 7 % model.config.vocab_size).unsqueeze(0)
    with torch.no_grad():
        logits: Tensor = model(input_ids=ids).logits
    return logits


@dataclass
class _Merge:
    """One merge under way.

    Attributes:
        base: folder of the base model.
        config: configuration of the merged model.
        pairs: name of each adapted weight to its A and B.
        replaced: name of each weight that was trained whole to its value.
        scale: of B @ A.
        squares: sum of squares of everything that was changed so far.
    """

    base: Path
    config: dict[str, Any]
    pairs: Mapping[str, tuple[Tensor, Tensor]]
    replaced: Mapping[str, Tensor]
    scale: float
    squares: float = field(default=0.0)

    @staticmethod
    def read(base: Path, adapter: Path) -> "_Merge":
        settings = json.loads((adapter / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        odd = sorted(name for name, plain in _PLAIN.items() if (settings.get(name) or plain) != plain)
        if odd:
            raise ExportCheckError(
                f"adapter sets {', '.join(odd)}, which is not merged here; train a plain LoRA adapter"
            )
        tensors = {name.removeprefix(_PREFIX): tensor for name, tensor in load_file(adapter / ADAPTER_WEIGHTS).items()}
        pairs, replaced = {}, {}
        for name, tensor in tensors.items():
            if name.endswith(".lora_A.weight"):
                module = name.removesuffix(".lora_A.weight")
                pairs[f"{module}.weight"] = tensor.float(), tensors[f"{module}.lora_B.weight"].float()
            elif not name.endswith(".lora_B.weight"):
                replaced[name] = tensor.float()
        config = json.loads((base / "config.json").read_text(encoding="utf-8"))
        return _Merge(base, config, pairs, replaced, settings["lora_alpha"] / settings["r"])

    def weights(self) -> Iterator[tuple[str, Weight]]:
        """Yield every merged weight by name; the configuration is untied on the way where it must be."""
        stored = {name: self.base / file for file in weight_files(self.base) for name in read_header(self.base / file)}
        unused = {*self.pairs, *self.replaced} - {*stored, _HEAD}
        if unused:
            raise ExportCheckError(f"base model has no weight {min(unused)} that the adapter changes; use its own base")
        self._untie()
        tied = self.config.get("tie_word_embeddings", False)
        for name in sorted({*stored, _HEAD} if not tied else {*stored} - {_HEAD}):
            with safe_open(stored.get(name, stored[_EMBEDDING]), framework="torch") as file:
                before = file.get_tensor(name if name in stored else _EMBEDDING).float()
            yield name, self._merged(name, before).numpy()

    def _untie(self) -> None:
        """One matrix cannot stand for two that were trained apart."""
        if self.config.get("tie_word_embeddings", False) and {_HEAD, _EMBEDDING} & {*self.replaced, *self.pairs}:
            self.config["tie_word_embeddings"] = False

    def _merged(self, name: str, before: Tensor) -> Tensor:
        after = self.replaced.get(name, before)
        if name in self.pairs:
            a, b = self.pairs[name]
            after = after + self.scale * (b @ a)
        if not bool(torch.isfinite(after).all()):
            raise ExportCheckError(f"merged weight {name} is not finite; the training diverged, train again")
        self.squares += float((after - before).double().square().sum())
        return after.contiguous()


def _write_config(config: Mapping[str, Any], out: Path) -> None:
    kept = {name: value for name, value in config.items() if name not in _DROPPED} | {"dtype": "float32"}
    text = json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False)
    (out / "config.json").write_text(text + "\n", encoding="utf-8")
