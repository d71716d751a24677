import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ftpipeline.backends import adapter, lora
from ftpipeline.errors import DeadTargetError, InputError, NonFiniteError
from ftpipeline.schema import Train, validate
from ftpipeline.steps.base_pin import check_base
from ftpipeline.store.trees import tree_digest
from ftpipeline_tests.tiny_model import LABELS, build_tiny_bert, tiny_train_params


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_bert(tmp_path_factory.mktemp("base"))


def settings(base: Path, targets: tuple[str, ...] = ("query",), **train: Any) -> Train:
    shape = {"r": 4, "lora_alpha": 8, "lora_dropout": 0.0, "target_modules": targets}
    return validate(Train, tiny_train_params(base, lora=shape, **train)["train"], "train", InputError)


def without(base: Path, prefix: str) -> Path:
    """Take the weights whose names begin with `prefix` out of a base model."""
    weights = load_file(base / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if not name.startswith(prefix)}
    save_file(kept, base / "model.safetensors", metadata={"format": "pt"})
    return base


def with_head(base: Path, classes: int) -> Path:
    """Put a classifier of so many classes on a base model."""
    weights = load_file(base / "model.safetensors")
    named = {f"bert.{name}": weight for name, weight in weights.items()}
    named["classifier.weight"] = np.full((classes, 32), 0.25, np.float32)
    named["classifier.bias"] = np.zeros(classes, np.float32)
    save_file(named, base / "model.safetensors", metadata={"format": "pt"})
    return base


def test_only_the_adapter_and_the_saved_modules_are_trained(base: Path) -> None:
    built = lora.build(base, LABELS, settings(base))
    trained = {name for name, parameter in built.model.named_parameters() if parameter.requires_grad}
    assert {part for name in trained for part in name.split(".") if part in ("query", "classifier", "pooler")} == {
        "query",
        "classifier",
        "pooler",
    }
    assert all("lora_" in name or "modules_to_save" in name for name in trained)
    assert (built.matches, built.partial) == ({"query": 2}, {})


def test_label_order_defines_the_class_ids(base: Path) -> None:
    config = lora.build(base, ["z", "a"], settings(base)).model.config
    assert config.id2label == {0: "z", 1: "a"}


def test_a_target_that_matches_nothing_is_named_with_what_the_others_match(base: Path) -> None:
    with pytest.raises(DeadTargetError, match="query: 2, q_proj: 0"):
        lora.build(base, LABELS, settings(base, ("query", "q_proj")))


def test_a_target_is_no_part_of_a_name(base: Path) -> None:
    with pytest.raises(DeadTargetError, match="uery: 0"):
        lora.build(base, LABELS, settings(base, ("uery",)))


def test_a_module_to_save_that_matches_nothing_is_named(base: Path) -> None:
    with pytest.raises(DeadTargetError, match="module to save matches nothing"):
        lora.build(base, LABELS, settings(base, modules_to_save=["poler"]))


def test_a_layer_that_lora_cannot_adapt_is_a_verdict(base: Path) -> None:
    with pytest.raises(DeadTargetError, match="LoRA cannot adapt"):
        lora.build(base, LABELS, settings(base, ("attention",)))


def test_random_weights_are_accepted_only_where_the_adapter_keeps_them(tmp_path: Path) -> None:
    headless = without(build_tiny_bert(tmp_path / "base"), "pooler.")
    lora.build(headless, LABELS, settings(headless, modules_to_save=["pooler"]))
    with pytest.raises(InputError, match=r"lacks the weights bert\.pooler\.dense\.bias"):
        lora.build(headless, LABELS, settings(headless, modules_to_save=["classifier"]))


def test_a_target_in_some_layers_only_is_reported(base: Path) -> None:
    built = lora.build(base, LABELS, settings(base, ("query", "layer.1.attention.self.key")))
    assert built.matches == {"query": 2, "layer.1.attention.self.key": 1}
    assert built.partial == {"layer.1.attention.self.key": "1 of 2 layers, not in 0"}


def test_a_head_of_another_size_is_replaced(tmp_path: Path) -> None:
    headed = with_head(build_tiny_bert(tmp_path / "base"), classes=7)
    model = lora.build(headed, LABELS, settings(headed)).model
    assert model.config.num_labels == len(LABELS)
    shapes = {tuple(p.shape) for name, p in model.named_parameters() if "classifier" in name and "weight" in name}
    assert shapes == {(len(LABELS), 32)}


def test_a_head_of_the_right_size_is_kept(tmp_path: Path) -> None:
    headed = with_head(build_tiny_bert(tmp_path / "base"), classes=len(LABELS))
    model = lora.build(headed, LABELS, settings(headed)).model
    weights = [p for name, p in model.named_parameters() if "classifier" in name and "weight" in name]
    assert all(bool((weight == 0.25).all()) for weight in weights)


def test_the_adapter_names_its_base_by_digest(base: Path, tmp_path: Path) -> None:
    adapter.save(lora.build(base, LABELS, settings(base)).model, tmp_path / "adapter")
    assert check_base(base, tmp_path / "adapter") == tree_digest(base)


@pytest.mark.parametrize("part", ["lora_A", "lora_B", "classifier"])
def test_a_weight_that_is_not_finite_is_never_saved(base: Path, tmp_path: Path, part: str) -> None:
    model = lora.build(base, LABELS, settings(base)).model
    weight = next(p for name, p in model.named_parameters() if part in name and p.requires_grad)
    weight.data.view(-1)[0] = math.inf
    with pytest.raises(NonFiniteError, match=f"adapter weight .*{part}.* is not finite"):
        adapter.save(model, tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()


def test_a_folder_that_is_no_model_is_refused_on_one_line(base: Path, tmp_path: Path) -> None:
    broken = build_tiny_bert(tmp_path / "base")
    (broken / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(InputError, match="cannot be loaded as a classifier") as caught:
        lora.build(broken, LABELS, settings(base))
    assert "\n" not in str(caught.value)
