"""Merging tensor by tensor gives what the adapter on its base answers, in files of bounded size, and nothing else."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ftpipeline.backends.adapter_loading import attach
from ftpipeline.backends.causal_merge import merge_causal
from ftpipeline.backends.causal_model import load_causal
from ftpipeline.backends.shards import read_weights
from ftpipeline.digest import of_file
from ftpipeline.errors import AdapterKeysError, BaseModelMismatchError, ExportCheckError
from ftpipeline.steps.tokenizer import tokenizer_files
from ftpipeline_tests.backends.causal.tiny import build_adapter
from ftpipeline_tests.backends.tiny_adapter import edit_weights
from ftpipeline_tests.tiny_llama import HIDDEN, build_tiny_llama
from ftpipeline_tests.tiny_model import shard

IDS = torch.tensor([[5, 17, 300, 2, 41]])


@pytest.fixture
def adapter(llama_adapter: Path, tmp_path: Path) -> Path:
    """A copy of the adapter that a test may damage."""
    return Path(shutil.copytree(llama_adapter, tmp_path / "adapter"))


def answers_alike(base: Path, adapter: Path, merged: Path) -> bool:
    with torch.no_grad():
        expected = attach(load_causal(base), adapter, ())(input_ids=IDS).logits
        return bool(torch.allclose(load_causal(merged)(input_ids=IDS).logits, expected, atol=1e-4))


def test_the_merged_model_answers_as_the_adapter_on_its_base(llama: Path, llama_adapter: Path, tmp_path: Path) -> None:
    facts = merge_causal(llama, llama_adapter, tmp_path / "out")
    assert answers_alike(llama, llama_adapter, tmp_path / "out")
    assert 0 < facts["max_logit_difference"] < 1e-3
    assert facts["merge_delta_norm"] > 0
    for name in tokenizer_files(llama):
        assert (tmp_path / "out" / name).read_bytes() == (llama / name).read_bytes()


def test_files_are_bounded_and_hold_the_same_weights(llama: Path, llama_adapter: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    merge_causal(llama, llama_adapter, whole)
    limit = 64 * HIDDEN * 4
    facts = merge_causal(llama, llama_adapter, cut, limit)
    files = sorted(cut.glob("model-*.safetensors"))
    assert facts["weight_files"] == len(files) > 3
    for file in files:
        tensors = load_file(file)
        assert len(tensors) == 1 or sum(tensor.nbytes for tensor in tensors.values()) <= limit
    expected = dict(read_weights(whole))
    assert all((weight == expected.pop(name)).all() for name, weight in read_weights(cut))
    assert not expected
    assert answers_alike(llama, llama_adapter, cut)


def test_a_base_in_several_files_is_merged_alike(llama: Path, tmp_path: Path) -> None:
    base = shard(Path(shutil.copytree(llama, tmp_path / "base")))
    adapter = build_adapter(tmp_path / "adapter", base)
    merge_causal(base, adapter, tmp_path / "out")
    assert answers_alike(base, adapter, tmp_path / "out")


def test_equal_models_give_equal_bytes(llama: Path, llama_adapter: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "first", tmp_path / "second"]
    for out in outs:
        merge_causal(llama, llama_adapter, out)
    assert of_file(outs[0] / "model.safetensors") == of_file(outs[1] / "model.safetensors")
    assert (outs[0] / "config.json").read_bytes() == (outs[1] / "config.json").read_bytes()


@pytest.mark.parametrize("saved", [["lm_head"], ["embed_tokens"], ["embed_tokens", "lm_head"]])
@pytest.mark.filterwarnings("ignore:.*tie_word_embeddings")
def test_embeddings_that_were_trained_apart_are_untied(llama: Path, tmp_path: Path, saved: list[str]) -> None:
    adapter = build_adapter(tmp_path / "adapter", llama, modules_to_save=saved)
    merge_causal(llama, adapter, tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    weights = dict(read_weights(tmp_path / "out"))
    assert config["tie_word_embeddings"] is False
    assert not np.array_equal(weights["lm_head.weight"], weights["model.embed_tokens.weight"])
    assert answers_alike(llama, adapter, tmp_path / "out")


def test_embeddings_that_were_not_trained_stay_tied(llama: Path, llama_adapter: Path, tmp_path: Path) -> None:
    merge_causal(llama, llama_adapter, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))["tie_word_embeddings"] is True
    assert "lm_head.weight" not in dict(read_weights(tmp_path / "out"))


def test_half_precision_weights_are_merged_in_fp32(llama: Path, tmp_path: Path) -> None:
    base = Path(shutil.copytree(llama, tmp_path / "base"))
    half = {name: tensor.bfloat16() for name, tensor in load_file(base / "model.safetensors").items()}
    save_file(half, base / "model.safetensors", metadata={"format": "pt"})
    adapter = build_adapter(tmp_path / "adapter", base)
    merge_causal(base, adapter, tmp_path / "out")
    assert all(weight.dtype == np.float32 for _, weight in read_weights(tmp_path / "out"))
    assert answers_alike(base, adapter, tmp_path / "out")


def test_an_adapter_of_another_base_is_refused(tmp_path: Path, llama_adapter: Path) -> None:
    other = build_tiny_llama(tmp_path / "other")
    (other / "chat_template.jinja").write_text("{{ messages[0]['content'] }}", encoding="utf-8")
    with pytest.raises(BaseModelMismatchError):
        merge_causal(other, llama_adapter, tmp_path / "out")


def test_an_adapter_that_changes_nothing_is_refused(llama: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportCheckError, match="changed no weight"):
        merge_causal(llama, build_adapter(tmp_path / "adapter", llama, scale=0.0), tmp_path / "out")


def test_renamed_keys_are_refused(llama: Path, adapter: Path, tmp_path: Path) -> None:
    def rename(tensors: dict[str, torch.Tensor]) -> None:
        name = min(tensors)
        tensors[name.replace("model.layers", "model.blocks")] = tensors.pop(name)

    edit_weights(adapter, rename)
    with pytest.raises(AdapterKeysError):
        merge_causal(llama, adapter, tmp_path / "out")


@pytest.mark.parametrize("setting", [{"use_rslora": True}, {"alpha_pattern": {"q_proj": 3}}])
def test_an_adapter_that_is_more_than_a_plain_one_is_refused(
    llama: Path, adapter: Path, tmp_path: Path, setting: dict[str, object]
) -> None:
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | setting), "utf-8")
    with pytest.raises(ExportCheckError, match=next(iter(setting))):
        merge_causal(llama, adapter, tmp_path / "out")
