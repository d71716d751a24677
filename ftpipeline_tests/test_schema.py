"""What is declared of causal models and exports is refused where it would mean nothing."""

from typing import Any

import pytest
from pydantic import ValidationError

from ftpipeline import manifest
from ftpipeline.errors import ManifestError
from ftpipeline.schema import MAX_NEW_TOKENS, Evaluation, Export, Train
from ftpipeline_tests.test_manifest import GOOD


def with_prompt(prompt: str, task: str) -> dict[str, Any]:
    return GOOD | {"task": task, "train": GOOD["train"] | {"prompt": prompt}}


def test_a_causal_model_is_asked_with_the_declared_prompt() -> None:
    parsed = manifest.parse(with_prompt("Which of {labels}? {text}", "causal_lm"), "m")
    assert parsed.projection("train")["train"]["prompt"] == "Which of {labels}? {text}"


def test_a_prompt_that_no_model_is_asked_is_refused() -> None:
    with pytest.raises(ManifestError, match="asked of a causal model only"):
        manifest.parse(with_prompt("Which queue? {text}", "sequence_classification"), "m")


@pytest.mark.parametrize("prompt", ["", "Which queue?", "{text} {text}", "{labels}"])
def test_a_prompt_must_show_the_text_once(prompt: str) -> None:
    with pytest.raises(ValidationError, match=r"must hold \{text\} once"):
        Train.model_validate(GOOD["train"] | {"prompt": prompt})


def test_an_adapter_alone_is_not_quantized() -> None:
    with pytest.raises(ValidationError, match="an adapter alone is not quantized"):
        Export(merge_adapter=False, quantize="int8")
    assert Export(merge_adapter=False, quantize="none").merge_adapter is False


@pytest.mark.parametrize("tokens", [0, MAX_NEW_TOKENS + 1])
def test_a_models_own_words_are_bounded(tokens: int) -> None:
    with pytest.raises(ValidationError):
        Evaluation(max_new_tokens=tokens)
