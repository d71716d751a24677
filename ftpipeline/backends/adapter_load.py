"""The load test of an adapter: `python -m ftpipeline.backends.adapter_load FOLDER BASE_MODEL TASK`.

Loads the base, puts the adapter of the export folder on it, and exits with 0 when every logit of a probe was finite.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from peft import PeftModel

from ftpipeline.backends.adapter_loading import attach
from ftpipeline.backends.causal_model import load_causal
from ftpipeline.backends.classifier import load_classifier
from ftpipeline.steps.artifact import LABELS_FILE

_PROBE_TOKENS = 8


def load_adapted(folder: Path, base_model: Path, task: str) -> PeftModel:
    """Return the base model with the adapter of an export folder on it, in evaluation mode.

    Args:
        folder: the export.
        base_model: folder of the base model.
        task: name of the task in the manifest.
    """
    if task == "causal_lm":
        return attach(load_causal(base_model), folder, ())
    labels = json.loads((folder / LABELS_FILE).read_text(encoding="utf-8"))
    base, untrained = load_classifier(base_model, labels)
    return attach(base, folder, untrained)


def main(argv: Sequence[str]) -> None:
    """Load what is named in `argv` and ask it once."""
    model = load_adapted(Path(argv[0]), Path(argv[1]), argv[2])
    with torch.no_grad():
        logits = model(input_ids=torch.arange(_PROBE_TOKENS).unsqueeze(0)).logits
    if not bool(torch.isfinite(logits).all()):
        sys.exit("the model answers a logit that is not finite")


if __name__ == "__main__":
    main(sys.argv[1:])
