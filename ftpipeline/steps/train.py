"""Train a LoRA adapter in a worker process, after checking what it is given, and check what it made.

Output: `adapter/`, `metrics.jsonl` (one line an optimizer step) and `train.json`.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from ftpipeline.errors import EmptyResultError, InputError, LabelError, LeakageError
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.schema import Task, Train, validate
from ftpipeline.steps.metrics import check_labels
from ftpipeline.steps.ports import Launcher, Progress, WorkerRequest, silent
from ftpipeline.steps.tokenizer import check_tokenizer
from ftpipeline.steps.train_output import read_training
from ftpipeline.steps.weight_files import model_tensors, read_object

_WORKER = "ftpipeline.backends.train_worker"
_HEADS = ("classifier.weight", "classifier.out_proj.weight", "score.weight")
"""The last layer of a classifier, as the models of transformers name it."""

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
        inputs: `split` (train.parquet, validation.parquet, leakage.json) and `base_model`; `eval_regression` where it
            is to be measured at every evaluation.
        params: the manifest's `task`, `labels` (their order is the class ids), `tokenizer_sha256` and `train`.
        out: becomes the training's tree; its bytes depend on inputs and params alone.
        launcher: runs the worker.
        progress: told of every optimizer step.

    Returns:
        The worker's facts (steps, epochs, rows, validation, drift from the base, parameters, matches of the LoRA
        targets), the losses, and the seconds it took.

    Raises:
        LeakageError: the split does not say that its training rows are free of eval rows.
        TokenizerMismatchError: the base model's tokenizer is not the pinned one.
        LabelError: a row's label is outside the list, or the list is unusable.
        EmptyResultError: a part of the split has no row.
        ModelFilesError: the base model is not whole.
        InputError: another parameter or file cannot be used.
        TrainingFailedError: the training ended without an adapter that may be used.
    """
    split, base = inputs["split"], inputs["base_model"]
    settings = validate(Train, params["train"], "train", InputError)
    _check_task(params["task"])
    check_labels(params["labels"])
    _check_leakage(split)
    check_tokenizer(base, params["tokenizer_sha256"], "base model")
    _check_length(base, settings.max_length)
    _check_head(base, len(params["labels"]), settings.modules_to_save)
    for part in _PARTS:
        _check_rows(split / f"{part}.parquet", params["labels"])
    started = time.monotonic()
    launcher.launch(WorkerRequest(_WORKER, dict(inputs), dict(params), out), progress)
    return read_training(out) | {"seconds": round(time.monotonic() - started, 1)}


def _check_task(task: str) -> None:
    if task not in get_args(Task):
        raise InputError(f"task {task!r} cannot be trained; use {' or '.join(get_args(Task))}")


def _check_leakage(split: Path) -> None:
    """The split decides what to do about leaked rows; here it must have decided."""
    try:
        verdict = json.loads((split / "leakage.json").read_text(encoding="utf-8"))["verdict"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LeakageError(f"split has no leakage verdict ({error!r}); run the split step again") from error
    if verdict not in _SAFE_VERDICTS:
        raise LeakageError(f"leakage verdict of the split is {verdict!r}; drop the leaked rows")


def _check_length(base: Path, max_length: int) -> None:
    """Compare with what the model's files state; a model with relative positions states no limit."""
    stated = (("config.json", "max_position_embeddings"), ("tokenizer_config.json", "model_max_length"))
    for name, field in stated:
        if not (base / name).is_file():
            continue
        limit = read_object(base, name).get(field)
        if limit is not None and max_length > limit:
            raise InputError(f"train.max_length {max_length} is beyond the base model's {field} {limit}; lower it")


def _check_head(base: Path, labels: int, replaced: Sequence[str]) -> None:
    """Refuse a trained head of another size, unless it is declared that a new one takes its place."""
    tensors = model_tensors(base)
    for name in _HEADS:
        module = name.partition(".")[0]
        if name in tensors and tensors[name].shape[0] != labels and module not in replaced:
            raise InputError(
                f"the base model's head {module!r} tells {tensors[name].shape[0]} classes apart, the label list has "
                f"{labels}; add {module} to train.modules_to_save to train a new head, or give the head's own labels"
            )


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
