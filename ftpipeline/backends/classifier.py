"""A base model loaded as a classifier, in fp32, from its own folder and nothing else."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from ftpipeline.backends.quiet import loading_quietly
from ftpipeline.errors import InputError


def load_classifier(
    base_model: Path, labels: Sequence[str], *, attention: str | None = None
) -> tuple[PreTrainedModel, set[str]]:
    """Return the base as a classifier, and the names of its weights that are random.

    Those are the ones that its files do not hold, or hold in another size, as the head of another number of classes.

    Args:
        base_model: folder with configuration and safetensors weights.
        labels: label of each class id.
        attention: implementation of the attention; the library's choice if None.

    Raises:
        InputError: the folder is no model that can classify.
    """
    try:
        with loading_quietly():
            model, report = AutoModelForSequenceClassification.from_pretrained(
                base_model,
                num_labels=len(labels),
                id2label=dict(enumerate(labels)),
                label2id={label: index for index, label in enumerate(labels)},
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
                attn_implementation=attention,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        summary = " ".join(str(error).split())
        raise InputError(f"base model cannot be loaded as a classifier ({summary:.300}); check its files") from error
    return model, {*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}
