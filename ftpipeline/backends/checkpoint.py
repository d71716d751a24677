"""The folder of a checkpoint: complete when its marker, which is written last, lists every file with its hash.

Loads no machine-learning library: launchers look at checkpoints too.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.errors import CheckpointError, DigestError
from ftpipeline.steps.train_output import CONFIG_FILE, EVALUATIONS, METRICS, WEIGHTS_FILE

MARKER = "checkpoint.json"
OPTIMIZER, SCHEDULER, GENERATORS, STATE = "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"
SCALER = "scaler.pt"
"""Only where half precision needs one; like every file, it is in the marker if it was saved."""

FILES = (CONFIG_FILE, WEIGHTS_FILE, OPTIMIZER, SCHEDULER, GENERATORS, STATE, METRICS, EVALUATIONS)
"""What a training needs to go on as if it had never stopped."""

_SCHEMA = "ftpipeline.checkpoint/1"
_REMEDY = "resume from an older checkpoint, or train from the beginning"


@dataclass(frozen=True)
class Mark:
    """What a checkpoint says of itself.

    Attributes:
        step: optimizer steps that were made.
        epoch: of the training data, as far as it was seen.
        last_step: optimizer step at which the training ends.
        params: digest of the training's parameters.
        files: file name to digest, of every file but the marker.
    """

    step: int
    epoch: float
    last_step: int
    params: Digest
    files: Mapping[str, Digest]

    @property
    def is_last(self) -> bool:
        """Tell whether no optimizer step is left to make."""
        return self.step >= self.last_step


def name_of(step: int | str) -> str:
    """Return the name of the folder of the checkpoint after `step`; of `*`, the pattern of all such names."""
    return f"checkpoint-{step}"


def params_digest(params: Mapping[str, Any]) -> Digest:
    """Return the digest of a training's parameters; a checkpoint is resumed under equal ones only."""
    return digest.of_json(params)


def complete(folder: Path, *, step: int, epoch: float, last_step: int, params: Digest) -> None:
    """Write the marker, after everything else.

    Law: `verify(folder)` returns what was given here, until a byte of the folder changes.
    """
    files = {path.name: digest.of_file(path) for path in sorted(folder.iterdir())}
    mark = Mark(step, epoch, last_step, params, files)
    (folder / MARKER).write_bytes(digest.canonical_json({"schema": _SCHEMA, **asdict(mark)}))


def verify(folder: Path, params: Digest | None = None) -> Mark:
    """Return what a complete checkpoint says of itself.

    Args:
        folder: the checkpoint.
        params: digest that the parameters must have; None where it is not resumed but only used.

    Raises:
        CheckpointError: as `check`.
    """
    files = {path.name: digest.of_file(path) for path in sorted(folder.iterdir()) if path.name != MARKER}
    marker = folder / MARKER
    return check(folder.name, marker.read_bytes() if marker.is_file() else None, files, params)


def check(name: str, marker: bytes | None, files: Mapping[str, Digest], params: Digest | None) -> Mark:
    """Return what a marker says, if the files are those that it lists.

    Args:
        name: of the checkpoint, for messages.
        marker: content of the marker; None where there is none.
        files: digests of all other files, by name.
        params: digest that the parameters must have; None for any.

    Raises:
        CheckpointError: a file is missing, altered or unlisted, the marker is missing or unreadable, or the checkpoint
            belongs to a training with other parameters.
    """
    if marker is None:
        raise CheckpointError(f"{name} has no {MARKER}: it was not completed; {_REMEDY}")
    mark = _parse(name, marker)
    if missing := sorted(({*FILES} | {*mark.files}) - {*files}):
        raise CheckpointError(f"{name} has no {', '.join(missing)}; {_REMEDY}")
    if unlisted := sorted({*files} - {*mark.files}):
        raise CheckpointError(f"{name} holds {', '.join(unlisted)}, which its marker does not list; {_REMEDY}")
    if altered := sorted(file for file, stated in mark.files.items() if files[file] != stated):
        raise CheckpointError(f"{', '.join(altered)} of {name} is not what its marker lists; {_REMEDY}")
    if params not in (None, mark.params):
        raise CheckpointError(
            f"{name} belongs to a training with other parameters ({mark.params}, not {params}); train anew"
        )
    return mark


def _parse(name: str, marker: bytes) -> Mark:
    try:
        document = json.loads(marker)
        if document["schema"] != _SCHEMA:
            raise ValueError(f"its format is {document['schema']!r}")
        step, epoch, last_step = int(document["step"]), float(document["epoch"]), int(document["last_step"])
        files = {str(file): digest.parse(text) for file, text in document["files"].items()}
        return Mark(step, epoch, last_step, digest.parse(document["params"]), files)
    except (ValueError, KeyError, TypeError, AttributeError, DigestError) as error:
        raise CheckpointError(f"{MARKER} of {name} cannot be read ({error}); {_REMEDY}") from error
