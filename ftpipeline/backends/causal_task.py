"""How a causal model is trained to answer a text with the spelling of its label."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import torch
from peft import TaskType
from torch import Tensor
from torch.nn import functional
from transformers import Trainer

from ftpipeline.backends import lora
from ftpipeline.backends.causal_model import load_causal
from ftpipeline.backends.causal_prompt import Prompter, check_chat
from ftpipeline.backends.causal_runtime import TransformersRuntime
from ftpipeline.backends.dataset import EncodedRows
from ftpipeline.backends.label_scoring import label_scores
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.lora import LoraModel
from ftpipeline.backends.tasks import Collator, Loss, TaskRecipe, check_vocabulary
from ftpipeline.errors import EmptyResultError, ExportCheckError, LabelError, NonFiniteError
from ftpipeline.schema import Train
from ftpipeline.steps.base_pin import base_tree
from ftpipeline.steps.label_parsing import LabelParser
from ftpipeline.steps.metrics import classification_report

_UNTRAINED = -100
"""The label of a token that the loss leaves out."""


class CausalLanguageModel(TaskRecipe):
    """The tokens of a label after a prompt about the text, and the token that ends the answer; nothing else is trained.

    What is trained on is told from padding by its place, never by its id: many models pad with the very token that ends
    an answer.
    """

    def __init__(self, base_model: Path, labels: Sequence[str], settings: Train, stop: StopRequest) -> None:
        """Load the tokenizer.

        Raises:
            InputError: it cannot be used, or has no chat template.
            LabelError: two labels are one in an answer.
        """
        super().__init__(base_model, labels, settings, stop)
        check_chat(self.tokenizer)
        LabelParser(labels)
        self.prompter = Prompter(self.tokenizer, labels, settings.prompt, settings.max_length)

    def encode(self, path: Path) -> EncodedRows:
        """Return prompt and answer as token ids, the labels of the prompt's left out of the loss.

        Raises:
            UnlabelledSampleError: the prompt leaves no room for an answer.
        """
        table = pyarrow.parquet.read_table(path, columns=["text", "label"])
        if not table.num_rows:
            raise EmptyResultError(f"{path.name} has no row; widen the window or relax curation")
        return EncodedRows(list(self._rows(path, table["text"].to_pylist(), table["label"].to_pylist())))

    def _rows(self, path: Path, texts: Sequence[str], labels: Sequence[str]) -> Iterator[dict[str, Any]]:
        classes = {label: index for index, label in enumerate(self.labels)}
        for text, label in zip(texts, labels, strict=True):
            self.stop.check("while the rows were encoded")
            if label not in classes:
                raise LabelError(f"{path.name} holds the label {label!r}, which is not in the list; curate again")
            prompt, answer = self.prompter.prompt(text), self.prompter.answers[classes[label]]
            yield {
                "input_ids": [*prompt, *answer],
                "labels": [*[_UNTRAINED] * len(prompt), *answer],
                "class_id": classes[label],
            }

    def build_model(self) -> LoraModel:
        """Return the base with a fresh adapter."""
        base = load_causal(self.base_model)
        base.config.use_cache = False  # a state to go on from is of no use to a training
        built = lora.attach_new(base, self.settings, TaskType.CAUSAL_LM, base_tree(self.base_model))
        check_vocabulary(built, self.tokenizer)
        return built

    def collator(self) -> Collator:
        """Return a collator that pads a batch to its longest row, behind its last token."""
        return self._padded

    def _padded(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        longest = max(len(row["input_ids"]) for row in rows)
        batch: dict[str, list[list[int]]] = {"input_ids": [], "attention_mask": [], "labels": []}
        for row in rows:
            length, rest = len(row["input_ids"]), longest - len(row["input_ids"])
            batch["input_ids"].append([*row["input_ids"], *[int(self.tokenizer.pad_token_id)] * rest])
            batch["attention_mask"].append([1] * length + [0] * rest)
            batch["labels"].append([*row["labels"], *[_UNTRAINED] * rest])
        return {name: torch.tensor(values) for name, values in batch.items()}

    def loss(self) -> Loss:
        """Return the cross-entropy of the answers' tokens."""
        return _answer_loss

    def measure(self, trainer: Trainer, rows: EncodedRows) -> dict[str, float]:
        """Answer each row with its likeliest label; `loss` is the mean over the tokens of the true labels."""
        model: Any = trainer.model
        runtime = TransformersRuntime(model)
        truth: list[str] = []
        answers: list[str] = []
        losses: list[float] = []
        for index in range(len(rows)):
            self.stop.check("during validation")
            row = rows[index]
            prompt = row["input_ids"][: row["labels"].count(_UNTRAINED)]
            try:
                likelihoods = runtime.log_likelihoods(prompt, self.prompter.answers)
            except ExportCheckError as error:
                raise NonFiniteError(
                    f"a validation logit is not finite at row {index}; lower the learning rate"
                ) from error
            truth.append(self.labels[row["class_id"]])
            answers.append(self.labels[int(label_scores(likelihoods).argmax())])
            losses += (-likelihoods[row["class_id"]]).tolist()
        report = classification_report(truth, answers, self.labels)
        return {"loss": sum(losses) / len(losses), "accuracy": report.accuracy, "macro_f1": report.macro_f1}


def _answer_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | None = None) -> Tensor:
    targets = labels[:, 1:]
    trained = targets != _UNTRAINED
    logits = outputs.logits[:, :-1][trained].float()  # a few tokens of each row; the vocabulary is large
    total = functional.cross_entropy(logits, targets[trained], reduction="sum")
    return total / (trained.sum() if num_items_in_batch is None else num_items_in_batch)
