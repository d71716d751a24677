"""The adapter folder: weights and configuration whose bytes depend on the training alone."""

import json
import tempfile
from pathlib import Path

import torch
from peft import PeftModel
from peft.utils import get_peft_model_state_dict

from ftpipeline import digest
from ftpipeline.errors import NonFiniteError
from ftpipeline.steps import train_output
from ftpipeline.steps.base_pin import BASE_FIELD

CONFIG_FILE = train_output.CONFIG_FILE
WEIGHTS_FILE = train_output.WEIGHTS_FILE


def save(model: PeftModel, folder: Path) -> None:
    """Write the adapter of `model` into the new folder `folder`.

    peft writes a model card beside it, and its sets in an order that changes from process to process; only the weights
    are taken as they are. The configuration names the base model by the digest of its tree.

    Raises:
        NonFiniteError: a weight is not finite.
        DigestError: the model was not made by `lora.attach_new`, which names its base.
    """
    for name, weight in sorted(get_peft_model_state_dict(model, save_embedding_layers=False).items()):
        if not bool(torch.isfinite(weight).all()):
            raise NonFiniteError(f"adapter weight {name} is not finite after training; lower the learning rate")
    with tempfile.TemporaryDirectory(prefix="ftpipeline-adapter-") as scratch:
        model.save_pretrained(scratch, safe_serialization=True, save_embedding_layers=False)
        weights = Path(scratch, WEIGHTS_FILE).read_bytes()
        config = json.loads(Path(scratch, CONFIG_FILE).read_text(encoding="utf-8"))
    folder.mkdir()
    (folder / WEIGHTS_FILE).write_bytes(weights)
    config |= {
        BASE_FIELD: digest.parse(config[BASE_FIELD]),
        "target_modules": sorted(config["target_modules"]),
        "modules_to_save": sorted(set(config["modules_to_save"] or ())),
    }
    text = json.dumps(config, indent=2, sort_keys=True, allow_nan=False)
    (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")
