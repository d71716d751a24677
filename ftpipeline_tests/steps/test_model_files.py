"""A folder that is no whole causal model, or whose parts say different things of it, is told so, part by part."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.steps.model_files import ModelParts, disagreements, missing_files
from ftpipeline_tests.shared import shared

CONFIG: dict[str, Any] = {
    "vocab_size": 40,
    "eos_token_id": 2,
    "tie_word_embeddings": True,
    "hidden_size": 8,
    "num_hidden_layers": 1,
}
SOUND = ModelParts(
    config=CONFIG,
    shapes={"model.embed_tokens.weight": (40, 8), "model.layers.0.mlp.up_proj.weight": (16, 8)},
    tokens=40,
    end_token=2,
    head_is_embedding=None,
)


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if file.stat().st_size}


def test_a_complete_export_lacks_nothing() -> None:
    assert missing_files(names(shared("cases", "d", "export_complete"))) == []


def test_an_export_without_its_tokenizer_lacks_it_by_name() -> None:
    lacking = missing_files(names(shared("cases", "d", "export_missing_tokenizer")))
    assert lacking == ["a chat template", "tokenizer.json", "tokenizer_config.json"]


@pytest.mark.parametrize("weights", ["model.safetensors", "model.safetensors.index.json", "model.gguf"])
def test_weights_may_be_stored_in_any_way_that_is_served(weights: str) -> None:
    others = {"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}
    assert missing_files(others | {weights}) == []
    assert missing_files(others) == ["model.safetensors"]


@pytest.mark.parametrize("place", ["chat_template.jinja", "chat_template.json", "additional_chat_templates/tool.jinja"])
def test_a_chat_template_may_stand_wherever_it_is_looked_for(place: str) -> None:
    others = {"config.json", "tokenizer.json", "tokenizer_config.json", "model.gguf"}
    assert missing_files(others | {place}) == []
    assert missing_files(others, template_in_config=True) == []


def test_every_disagreement_of_the_reported_model_is_found() -> None:
    case = json.loads(shared("cases", "d", "config_mismatch.json").read_text("utf-8"))
    parts = ModelParts(
        config=case["config"],
        shapes={name: tuple(shape) for name, shape in case["tensors"].items()},
        tokens=case["tokenizer"]["len"],
        end_token=case["tokenizer"]["eos_token_id"],
        head_is_embedding=case["embed_equals_lm_head"],
        weight_type=case["weights_dtype"],
    )
    found = "; ".join(disagreements(parts))
    for part in ("32004 rows", "32004 tokens", "eos_token_id is 2", "would be lost", "no quantization_config"):
        assert part in found


def test_a_tokenizer_larger_than_the_configuration_is_found() -> None:
    case = json.loads(shared("cases", "c", "config_tied_modules_to_save.json").read_text("utf-8"))
    parts = replace(SOUND, config=CONFIG | case["base_config"], tokens=case["tokenizer_len"])
    assert any("32004 tokens" in found for found in disagreements(parts))


def test_parts_that_agree_are_sound() -> None:
    assert disagreements(SOUND) == []


@pytest.mark.parametrize(
    "change",
    [
        {"config": CONFIG | {"vocab_size": 41}},
        {"config": {key: value for key, value in CONFIG.items() if key != "vocab_size"}},
        {"config": CONFIG | {"hidden_size": 9}},
        {"config": CONFIG | {"num_hidden_layers": 2}},
        {"config": CONFIG | {"tie_word_embeddings": False}},
        {"config": CONFIG | {"eos_token_id": None}},
        {"tokens": 41},
        {"end_token": None},
        {"head_is_embedding": False},
        {"weight_type": "int8"},
    ],
)
def test_one_part_that_differs_is_found(change: dict[str, Any]) -> None:
    assert len(disagreements(replace(SOUND, **change))) == 1


def test_several_tokens_may_end_a_text() -> None:
    assert disagreements(replace(SOUND, config=CONFIG | {"eos_token_id": [1, 2]})) == []
