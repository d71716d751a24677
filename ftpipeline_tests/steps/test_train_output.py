import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from ftpipeline.errors import TrainingFailedError
from ftpipeline.steps.train_output import read_training, thin

STEPS = 3


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A complete training of three steps."""
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter/adapter_config.json").write_text("{}")
    save_file({"lora_A": np.ones((2, 2), np.float32)}, tmp_path / "adapter/adapter_model.safetensors")
    write_points(tmp_path, [{"step": step, "loss": 1 / step} for step in range(1, STEPS + 1)])
    (tmp_path / "train.json").write_text(json.dumps({"steps": STEPS}))
    return tmp_path


def write_points(out: Path, points: list[dict[str, object]]) -> None:
    rest = {"epoch": 0.5, "grad_norm": 1.0, "learning_rate": 0.1}
    (out / "metrics.jsonl").write_text("".join(json.dumps(rest | point) + "\n" for point in points))


def test_a_complete_training_gives_its_losses(out: Path) -> None:
    assert read_training(out) == {
        "steps": 3,
        "first_loss": 1.0,
        "last_loss": 1 / 3,
        "loss_curve": [[1, 1.0], [2, 0.5], [3, 1 / 3]],
    }


@pytest.mark.parametrize(
    "name", ["adapter/adapter_config.json", "adapter/adapter_model.safetensors", "metrics.jsonl", "train.json"]
)
def test_an_output_without_one_of_its_files_is_refused_by_its_name(out: Path, name: str) -> None:
    (out / name).unlink()
    with pytest.raises(TrainingFailedError, match=f"left no {name}"):
        read_training(out)


@pytest.mark.parametrize("field", ["loss", "grad_norm", "learning_rate"])
@pytest.mark.parametrize("value", [{"non_finite": "nan"}, None, "0.5", math.nan, math.inf])
def test_a_step_with_a_number_that_is_not_finite_is_refused(out: Path, field: str, value: object) -> None:
    points: list[dict[str, object]] = [{"step": step, "loss": 1.0} for step in range(1, STEPS + 1)]
    points[1][field] = value
    write_points(out, points)
    with pytest.raises(TrainingFailedError):
        read_training(out)


@pytest.mark.parametrize("steps", [[], [1, 2], [1, 3, 2], [1, 2, 2], [1, 2, 3, 4]])
def test_a_step_that_was_not_measured_or_measured_twice_is_refused(out: Path, steps: list[int]) -> None:
    write_points(out, [{"step": step, "loss": 1.0} for step in steps])
    with pytest.raises(TrainingFailedError, match="measures"):
        read_training(out)


def _nan(path: Path) -> None:
    save_file({"lora_A": np.array([1.0, np.nan], np.float32)}, path)


def _empty(path: Path) -> None:
    save_file({}, path)


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(("damage", "words"), [(_nan, "lora_A is not finite"), (_empty, "no weight"), (_torn, "read")])
def test_weights_that_cannot_be_used_are_refused(out: Path, damage: Callable[[Path], None], words: str) -> None:
    damage(out / "adapter/adapter_model.safetensors")
    with pytest.raises(TrainingFailedError, match=words):
        read_training(out)


@given(count=st.integers(0, 2000), limit=st.integers(2, 300))
def test_a_thinned_curve_keeps_order_and_both_ends_and_repeats_nothing(count: int, limit: int) -> None:
    thinned = thin(range(count), limit)
    assert len(thinned) == min(count, limit)
    assert thinned == sorted(set(thinned))
    assert thinned[:1] == list(range(count))[:1]
    assert thinned[-1:] == list(range(count))[-1:]
