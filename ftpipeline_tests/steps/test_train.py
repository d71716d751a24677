"""The train step: what it refuses before a worker starts, and one training through a real worker."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from safetensors.numpy import load_file, save_file

from ftpipeline.cycle.launch import SubprocessLauncher
from ftpipeline.errors import (
    EmptyResultError,
    FtpipelineError,
    InputError,
    LabelError,
    LeakageError,
    ModelFilesError,
    TokenizerMismatchError,
    TrainingFailedError,
)
from ftpipeline.records import Facts
from ftpipeline.steps.ports import Launcher, Progress, WorkerRequest
from ftpipeline.steps.train import train
from ftpipeline_tests.tiny_model import LABELS, build_tiny_bert, build_tiny_split, shard, tiny_train_params


class NoLauncher(Launcher):
    """Starts nothing, and remembers that it was asked to."""

    def __init__(self) -> None:
        self.asked = 0

    def _launch(self, request: WorkerRequest, progress: Progress) -> None:
        self.asked += 1


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return build_tiny_bert(tmp_path / "base")


@pytest.fixture
def split(tmp_path: Path) -> Path:
    return build_tiny_split(tmp_path / "split")


@pytest.fixture
def inputs(base: Path, split: Path) -> dict[str, Path]:
    return {"base_model": base, "split": split}


def refuse(inputs: dict[str, Path], params: dict[str, Any], error: type[FtpipelineError], words: str) -> None:
    """Expect an error before any worker is started."""
    launcher = NoLauncher()
    with pytest.raises(error, match=words):
        train(inputs, params, inputs["split"].parent / "out", launcher=launcher)
    assert launcher.asked == 0


def write_rows(path: Path, labels: list[str | None]) -> None:
    table = pyarrow.table({"text": ["text"] * len(labels), "label": pyarrow.array(labels, pyarrow.string())})
    pyarrow.parquet.write_table(table, path)


def test_a_training_through_a_worker_reports_progress_and_facts(inputs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    heard: list[tuple[int, int]] = []
    params = tiny_train_params(inputs["base_model"], max_steps=None, epochs=3)
    facts: Facts = train(
        inputs,
        params,
        out,
        launcher=SubprocessLauncher(),
        progress=lambda done, total, note: heard.append((done, total)),
    )
    assert heard == [(step, 12) for step in range(1, 13)]  # 32 rows in batches of 8, three times
    assert (facts["steps"], facts["epochs"], facts["rows"]) == (12, 3, {"train": 32, "validation": 16})
    assert facts["loss_curve"][0] == [1, facts["first_loss"]]
    assert facts["loss_curve"][-1] == [12, facts["last_loss"]]
    assert set(facts["validation"]) == {"loss", "accuracy", "macro_f1"}
    assert facts["seconds"] > 0
    assert "seconds" not in json.loads((out / "train.json").read_text())


def test_a_worker_that_leaves_nothing_has_not_trained(inputs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(TrainingFailedError, match="left no adapter"):
        train(inputs, tiny_train_params(inputs["base_model"]), tmp_path / "out", launcher=NoLauncher())


@pytest.mark.parametrize("text", ['{"verdict": "leaked"}', '{"verdict": null}', "{}", "[]", "not json", None])
def test_a_split_that_is_not_known_to_be_clean_is_refused(inputs: dict[str, Path], text: str | None) -> None:
    verdict = inputs["split"] / "leakage.json"
    verdict.unlink()
    if text is not None:
        verdict.write_text(text)
    refuse(inputs, tiny_train_params(inputs["base_model"]), LeakageError, "leakage verdict")


def test_a_changed_chat_template_is_another_tokenizer(inputs: dict[str, Path]) -> None:
    params = tiny_train_params(inputs["base_model"])
    (inputs["base_model"] / "chat_template.jinja").write_text("{{ messages }}")
    refuse(inputs, params, TokenizerMismatchError, "the manifest pins")


@pytest.mark.parametrize("part", ["train", "validation"])
@pytest.mark.parametrize("labels", [["billing", "refunds"], ["billing", None]])
def test_a_row_with_a_label_outside_the_list_is_refused(
    inputs: dict[str, Path], part: str, labels: list[str | None]
) -> None:
    write_rows(inputs["split"] / f"{part}.parquet", labels)
    refuse(inputs, tiny_train_params(inputs["base_model"]), LabelError, f"{part}.parquet holds 1 labels outside")


@pytest.mark.parametrize("part", ["train", "validation"])
def test_a_part_without_rows_is_refused(inputs: dict[str, Path], part: str) -> None:
    write_rows(inputs["split"] / f"{part}.parquet", [])
    refuse(inputs, tiny_train_params(inputs["base_model"]), EmptyResultError, f"{part}.parquet")


def test_a_missing_or_torn_part_is_refused(inputs: dict[str, Path]) -> None:
    params = tiny_train_params(inputs["base_model"])
    (inputs["split"] / "validation.parquet").write_bytes(b"PAR1")
    refuse(inputs, params, InputError, r"validation\.parquet of the split cannot be read")
    (inputs["split"] / "validation.parquet").unlink()
    refuse(inputs, params, InputError, r"validation\.parquet of the split cannot be read")


def test_rows_longer_than_the_model_can_read_are_refused(inputs: dict[str, Path]) -> None:
    params = tiny_train_params(inputs["base_model"], max_length=65)
    refuse(inputs, params, InputError, "max_length 65 is beyond the base model's max_position_embeddings 64")


def test_a_head_of_other_classes_is_refused_unless_it_is_to_be_replaced(inputs: dict[str, Path]) -> None:
    path = inputs["base_model"] / "model.safetensors"
    save_file(load_file(path) | {"classifier.weight": np.zeros((2, 32), np.float32)}, path)
    params = tiny_train_params(inputs["base_model"], modules_to_save=["pooler"])
    refuse(inputs, params, InputError, "head 'classifier' tells 2 classes apart, the label list has 3; add classifier")
    replaced = tiny_train_params(inputs["base_model"], modules_to_save=["classifier", "pooler"])
    refuse(inputs, replaced | {"tokenizer_sha256": "0" * 64}, TokenizerMismatchError, "pins")


def test_a_base_model_without_one_of_its_shards_is_refused(inputs: dict[str, Path]) -> None:
    params = tiny_train_params(shard(inputs["base_model"]))
    (inputs["base_model"] / "model-00001-of-00002.safetensors").unlink()
    refuse(inputs, params, ModelFilesError, r"has no model-00001-of-00002\.safetensors")


@pytest.mark.parametrize(("field", "value"), [("lr", float("nan")), ("epochs", 0), ("warmup", 3), ("batch_size", "8")])
def test_a_setting_that_cannot_be_trained_with_is_refused(inputs: dict[str, Path], field: str, value: object) -> None:
    refuse(inputs, tiny_train_params(inputs["base_model"], **{field: value}), InputError, field)


def test_a_check_for_learning_after_the_last_step_is_refused(inputs: dict[str, Path]) -> None:
    params = tiny_train_params(inputs["base_model"], max_steps=40, checks={"no_learning_steps": 41})
    refuse(inputs, params, InputError, "no_learning_steps 41 is beyond max_steps 40")


def test_another_task_or_label_list_is_refused(inputs: dict[str, Path]) -> None:
    params = tiny_train_params(inputs["base_model"])
    refuse(inputs, params | {"task": "regression"}, InputError, "use sequence_classification or causal_lm")
    refuse(inputs, params | {"labels": [*LABELS, LABELS[0]]}, LabelError, "twice")
