"""Train again what another job trained, from one of its checkpoints on, and keep what was measured, not what was made.

Output: `metrics.jsonl` and `evaluations.jsonl`, those of the replayed training up to the checkpoint among them, and
`replay.json`, which says how it ended. A replay may diverge; then it ended by a check, and that is its result.
"""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.digest import canonical_json
from ftpipeline.errors import (
    GradientSpikeError,
    LossExplosionError,
    NoLearningError,
    NonFiniteError,
    OverfittingError,
    TrainingFailedError,
    ZeroLossError,
)
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.steps.ports import Launcher, Progress, WorkerRequest, silent
from ftpipeline.steps.train_output import EVALUATIONS, METRICS, read_training

OUTCOME = "replay.json"

_WORKER = "ftpipeline.backends.train_worker"
_ENDINGS = (
    NonFiniteError,
    ZeroLossError,
    GradientSpikeError,
    LossExplosionError,
    OverfittingError,
    NoLearningError,
)


@step(
    "replay",
    code_version="1",
    kind=StepKind.LAUNCHED,
    distributions=("torch", "transformers", "peft", "accelerate", "safetensors", "tokenizers"),
)
def replay(
    inputs: Mapping[str, Path],
    params: Mapping[str, Any],
    out: Path,
    *,
    launcher: Launcher,
    progress: Progress = silent,
) -> Facts:
    """Train once more and return how it ended.

    Args:
        inputs: those of the replayed training.
        params: its parameters, with another seed and other checkpoints to consume; `replayed` names what it starts
            from and what it reads, so that both are in the key.
        out: becomes the replay's tree; it holds no weights.
        launcher: runs the worker, and hands it the checkpoint that it starts from.
        progress: told of every optimizer step.

    Returns:
        `ended`, the class and message of the check that ended the training, or None where it went on to its last step;
        and the seconds it took.

    Raises:
        TrainingFailedError: it came to no result of its own, such as a layer that does not exist.
    """
    started = time.monotonic()
    ended = None
    try:
        launcher.launch(WorkerRequest(_WORKER, dict(inputs), dict(params), out), progress)
        read_training(out)
    except _ENDINGS as error:
        ended = {"error": type(error).__name__, "message": str(error)}
    _keep_measurements(out)
    (out / OUTCOME).write_bytes(canonical_json({"ended": ended}))
    return {"ended": ended, "seconds": round(time.monotonic() - started, 1)}


def _keep_measurements(out: Path) -> None:
    """Remove the weights: whatever they are worth, they belong to nobody.

    Raises:
        TrainingFailedError: nothing was measured.
    """
    for path in out.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in (METRICS, EVALUATIONS):
            path.unlink()
    if not (out / METRICS).is_file():
        raise TrainingFailedError(f"replay left no {METRICS}; replay again")
