"""Train a LoRA adapter in a worker process, after checking what it is given, and check what it made.

Output: `adapter/`, `metrics.jsonl` (one line an optimizer step) and `train.json`.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ftpipeline.digest import hex_of
from ftpipeline.errors import EmptyResultError, InputError, LabelError, LeakageError, TokenizerMismatchError
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.schema import Train, validate
from ftpipeline.steps.metrics import check_labels
from ftpipeline.steps.ports import Launcher, Progress, WorkerRequest, silent
from ftpipeline.steps.tokenizer import tokenizer_sha256
from ftpipeline.steps.train_output import read_training

_WORKER = "ftpipeline.backends.train_worker"
_TASK = "sequence_classification"
_PARTS = ("train", "validation")
_SAFE_VERDICTS = ("clean", "dropped")


@step(
    "train",
    code_version="1",
    kind=StepKind.LAUNCHED,
    distributions=("torch", "transformers", "peft", "accelerate", "safetensors", "tokenizers"),
)
def train(
    inputs: Mapping[str, Path],
    params: Mapping[str, Any],
    out: Path,
    *,
    launcher: Launcher,
    progress: Progress = silent,
) -> Facts:
    """Fit an adapter to the training rows of a split.

    Args:
        inputs: `split` (train.parquet, validation.parquet, leakage.json) and `base_model`.
        params: the manifest's `task`, `labels` (their order is the class ids), `tokenizer_sha256` and `train`.
        out: becomes the training's tree; its bytes depend on inputs and params alone.
        launcher: runs the worker.
        progress: told of every optimizer step.

    Returns:
        The worker's facts (steps, epochs, rows, validation, parameters), the losses, and the seconds it took.

    Raises:
        LeakageError: the split does not say that its training rows are free of eval rows.
        TokenizerMismatchError: the base model's tokenizer is not the pinned one.
        LabelError: a row's label is outside the list, or the list is unusable.
        EmptyResultError: a part of the split has no row.
        InputError: another parameter or file cannot be used.
        TrainingFailedError: the training ended without an adapter that may be used.
    """
    split, base = inputs["split"], inputs["base_model"]
    settings = validate(Train, params["train"], "train", InputError)
    _check_task(params["task"])
    check_labels(params["labels"])
    _check_leakage(split)
    _check_tokenizer(base, params["tokenizer_sha256"])
    _check_length(base, settings.max_length)
    for part in _PARTS:
        _check_rows(split / f"{part}.parquet", params["labels"])
    started = time.monotonic()
    launcher.launch(WorkerRequest(_WORKER, dict(inputs), dict(params), out), progress)
    return read_training(out) | {"seconds": round(time.monotonic() - started, 1)}


def _check_task(task: str) -> None:
    if task != _TASK:
        raise InputError(f"task {task!r} cannot be trained; use {_TASK}")


def _check_leakage(split: Path) -> None:
    """The split decides what to do about leaked rows; here it must have decided."""
    try:
        verdict = json.loads((split / "leakage.json").read_text(encoding="utf-8"))["verdict"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LeakageError(f"split has no leakage verdict ({error!r}); run the split step again") from error
    if verdict not in _SAFE_VERDICTS:
        raise LeakageError(f"leakage verdict of the split is {verdict!r}; drop the leaked rows")


def _check_tokenizer(base: Path, pinned: str) -> None:
    found = hex_of(tokenizer_sha256(base))
    if found != pinned:
        raise TokenizerMismatchError(
            f"tokenizer of the base model is {found}, the manifest pins {pinned}; restore its files or pin again"
        )


def _check_length(base: Path, max_length: int) -> None:
    """Compare with what the model's files state; a model with relative positions states no limit."""
    stated = (("config.json", "max_position_embeddings"), ("tokenizer_config.json", "model_max_length"))
    for name, field in stated:
        if not (base / name).is_file():
            continue
        limit = json.loads((base / name).read_text(encoding="utf-8")).get(field)
        if limit is not None and max_length > limit:
            raise InputError(f"train.max_length {max_length} is beyond the base model's {field} {limit}; lower it")


def _check_rows(path: Path, labels: Sequence[str]) -> None:
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    try:
        column = pyarrow.parquet.read_table(path, columns=["label"])["label"]
    except (OSError, KeyError, pyarrow.ArrowException) as error:
        raise InputError(f"{path.name} of the split cannot be read ({error}); run the split step again") from error
    if not len(column):
        raise EmptyResultError(f"{path.name} of the split has no row; widen the window or relax curation")
    known = pyarrow.compute.is_in(column, value_set=pyarrow.array(labels, column.type))
    foreign = column.filter(pyarrow.compute.invert(known)).unique().to_pylist()
    if foreign:
        raise LabelError(
            f"{path.name} holds {len(foreign)} labels outside the list, such as {foreign[0]!r:.60}; curate again"
        )
