"""What a training is for: how its rows are encoded, its model built and its answers measured."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional
from transformers import AutoTokenizer, DataCollatorWithPadding, PreTrainedTokenizerBase, Trainer

from ftpipeline.backends import lora, validation
from ftpipeline.backends.dataset import EncodedRows, Encoder
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.lora import LoraModel
from ftpipeline.errors import InputError
from ftpipeline.schema import Train

Collator = Callable[[list[dict[str, Any]]], dict[str, Any]]
"""Makes one padded batch of rows."""

Loss = Callable[..., Tensor]
"""`loss(outputs, labels, num_items_in_batch=None)`; the items are those of all batches of an optimizer step."""


class TaskRecipe(ABC):
    """How one task is trained; made once a training, asked in the order of its methods."""

    def __init__(self, base_model: Path, labels: Sequence[str], settings: Train, stop: StopRequest) -> None:
        """Load what the rows need.

        Args:
            base_model: folder of the base model.
            labels: the declared labels; their order is the class ids.
            settings: everything that shapes the training.
            stop: asked while rows are encoded.

        Raises:
            InputError: the base model's tokenizer cannot be used.
        """
        self.base_model = base_model
        self.labels = labels
        self.settings = settings
        self.stop = stop
        self.tokenizer = load_tokenizer(base_model)

    @abstractmethod
    def encode(self, path: Path) -> EncodedRows:
        """Return the rows of a split's Parquet file in the file's order.

        Raises:
            EmptyResultError: the file has no row.
            LabelError: a label is outside the list.
        """

    @abstractmethod
    def build_model(self) -> LoraModel:
        """Return the base model with a fresh adapter; the generators have been seeded.

        Raises:
            InputError: the base model cannot be used for the task.
            TrainingFailedError: a layer that is to be trained does not exist.
        """

    @abstractmethod
    def collator(self) -> Collator:
        """Return what makes a batch."""

    def loss(self) -> Loss | None:
        """Return how a batch's loss is computed; None for the model's own.

        Law: the losses of the batches that make one optimizer step add up to the mean over all of their items.
        """
        return None

    @abstractmethod
    def measure(self, trainer: Trainer, rows: EncodedRows) -> dict[str, float]:
        """Return how well the model answers `rows`: `loss` in nats, `macro_f1`, and what else the task tells.

        Raises:
            TrainingFailedError: an answer is not finite.
            WorkerInterruptedError: a signal came between two batches.
        """


class SequenceClassification(TaskRecipe):
    """One of the labels for a text, from a head on the base model."""

    def encode(self, path: Path) -> EncodedRows:
        """Return token ids and class ids, cut to the longest length."""
        return Encoder(self.tokenizer, self.labels, self.settings.max_length, self.stop).encode(path)

    def build_model(self) -> LoraModel:
        """Return the base as a classifier of the labels; the head starts from random weights."""
        built = lora.build(self.base_model, self.labels, self.settings)
        check_vocabulary(built, self.tokenizer)
        return built

    def collator(self) -> Collator:
        """Return a collator that pads a batch to its longest row."""
        collator: Collator = DataCollatorWithPadding(self.tokenizer)
        return collator

    def loss(self) -> Loss:
        """Return the cross-entropy; heads take a mean of their own, and accumulated ones would then be added up."""
        return _mean_cross_entropy

    def measure(self, trainer: Trainer, rows: EncodedRows) -> dict[str, float]:
        """Measure from the logits themselves: the Trainer's own mean leaves out batches that are NaN."""
        answers = trainer.predict(rows)
        logits, truth = np.asarray(answers.predictions, np.float64), np.asarray(answers.label_ids, np.int64)
        return validation.measure(logits, truth, self.labels)


def _mean_cross_entropy(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | None = None) -> Tensor:
    logits = outputs.logits.float()
    if num_items_in_batch is None:
        return functional.cross_entropy(logits, labels)
    return functional.cross_entropy(logits, labels, reduction="sum") / num_items_in_batch


def load_tokenizer(base_model: Path) -> PreTrainedTokenizerBase:
    """Return the base model's own tokenizer.

    Raises:
        InputError: it cannot be loaded, or has no padding token.
    """
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            base_model, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        summary = " ".join(str(error).split())
        raise InputError(f"tokenizer of the base model cannot be loaded ({summary:.300}); check its files") from error
    if tokenizer.pad_token_id is None:
        raise InputError("tokenizer of the base model has no padding token; declare pad_token in tokenizer_config.json")
    return tokenizer


def check_vocabulary(built: LoraModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse token ids that the model has no embedding for; a model without a padding id takes the tokenizer's.

    Raises:
        InputError: there is such an id.
    """
    embeddings, ids = built.model.get_input_embeddings().num_embeddings, len(tokenizer)
    if ids > embeddings:
        raise InputError(
            f"tokenizer has {ids} tokens, the base model embeds {embeddings}; use the model's own tokenizer"
        )
    if built.model.config.pad_token_id is None:
        built.model.config.pad_token_id = tokenizer.pad_token_id
