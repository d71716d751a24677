"""Learning from other jobs' models beside the labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Trainer

from ftpipeline.backends.consuming import Weights, holding

_NO_LABEL = -100


class DistillingTrainer(Trainer):
    """A Trainer whose loss is shared between the labels and what teachers answer.

    With teachers of shares `a`, `b`, ... the loss is `(1 - a - b - ...)` of its own, plus `a` of the mean
    Kullback-Leibler divergence from the first teacher's answers, and so on, in nats. Measuring is not changed.
    """

    teachers: Sequence[tuple[Weights, float]] = ()
    """Weights that the model takes on to answer as a teacher, each with its share."""

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the loss of a batch, with the outputs where they are asked for."""
        if not self.teachers or not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        taught = [(self._answers(weights, inputs), share) for weights, share in self.teachers]
        labels = inputs["labels"]
        own, outputs = super().compute_loss(model, dict(inputs), True, num_items_in_batch)
        loss = own * (1.0 - sum(share for _, share in taught))
        for answers, share in taught:
            loss = loss + share * _divergence(outputs["logits"], answers, labels, num_items_in_batch)
        return (loss, outputs) if return_outputs else loss

    def _answers(self, weights: Weights, inputs: Mapping[str, Any]) -> Tensor:
        model: Any = self.model
        model.eval()  # a teacher drops nothing out, so it draws from no generator
        try:
            with torch.no_grad(), holding(model, weights):
                logits: Tensor = model(**{name: value for name, value in inputs.items() if name != "labels"}).logits
        finally:
            model.train()
        return logits


def _divergence(student: Tensor, teacher: Tensor, labels: Tensor, items: Tensor | int | None) -> Tensor:
    """Return the sum over labelled rows or tokens, divided by the items of the optimizer step."""
    if student.dim() == 3:  # (rows, tokens, vocabulary): a token is predicted from the one before it
        labelled = labels[:, 1:] != _NO_LABEL
        student, teacher = student[:, :-1][labelled], teacher[:, :-1][labelled]
    known, learnt = functional.log_softmax(teacher.float(), dim=-1), functional.log_softmax(student.float(), dim=-1)
    total = functional.kl_div(learnt, known, reduction="sum", log_target=True)
    return total / (len(student) if items is None else items)
