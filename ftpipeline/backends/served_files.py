"""The files of an export that are no model: labels, and the base's own tokenizer."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from ftpipeline.steps.artifact import LABELS_FILE
from ftpipeline.steps.tokenizer import tokenizer_files


def write_labels(labels: Sequence[str], out: Path) -> None:
    """Write the labels in the order of their class ids."""
    text = json.dumps(list(labels), indent=2, ensure_ascii=False)
    (out / LABELS_FILE).write_text(text + "\n", encoding="utf-8")


def copy_tokenizer(model: Path, out: Path) -> None:
    """Copy a model's tokenizer files as they are, because saving a tokenizer rewrites them."""
    for file in tokenizer_files(model):
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(model / file, out / file)
