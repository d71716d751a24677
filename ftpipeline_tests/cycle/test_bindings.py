"""A key depends on the code of the form that is made, and on no other form's."""

from pathlib import Path

import pytest

from ftpipeline.cycle import bindings
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.identity import identify

CLASSIFIER, CAUSAL = "sequence_classification", "causal_lm"


def modules(step: BoundStep, cache: Path) -> set[str]:
    """The first-party modules that a step's key depends on."""
    return {path.stem for path in identify(step, cache).modules}


@pytest.mark.parametrize("bind", [bindings.bound_export, bindings.bound_evaluate])
def test_a_classifiers_keys_do_not_depend_on_the_code_of_causal_models(bind: object, tmp_path: Path) -> None:
    assert callable(bind)
    reached = modules(bind(CLASSIFIER, True), tmp_path)
    assert "onnx_scorer" in reached
    assert not [name for name in reached if name.startswith(("causal_", "gguf_", "llama_", "adapter_export"))]


@pytest.mark.parametrize("merged", [True, False])
def test_a_causal_models_keys_do_not_depend_on_the_code_of_classifiers_graphs(merged: bool, tmp_path: Path) -> None:
    reached = modules(bindings.bound_export(CAUSAL, merged), tmp_path)
    assert "causal_scorer" in reached
    assert ("gguf_file" in reached) is merged
    assert not [name for name in reached if name.startswith("onnx_")]


def test_the_load_test_is_part_of_an_exports_key(tmp_path: Path) -> None:
    assert "causal_load" in modules(bindings.bound_export(CAUSAL, True), tmp_path)
    assert "adapter_load" in modules(bindings.bound_export(CAUSAL, False), tmp_path)
