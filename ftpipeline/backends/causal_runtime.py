"""Causal models at work: the likelihood of given answers, and an answer in the model's own words.

A runtime takes one prompt at a time, so that no answer depends on the texts beside it or on padding.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
import transformers
from peft import PeftModel
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from ftpipeline.backends.label_scoring import Floats, token_log_likelihoods

ANSWERS_AT_ONCE = 16
"""Answers that go on from one prompt together; fixed, because the last bits of a product depend on its shape."""


class CausalRuntime(ABC):
    """A loaded causal model."""

    name: str
    """Library and version that computes."""

    @abstractmethod
    def log_likelihoods(self, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> list[Floats]:
        """Return, for each answer, the log-likelihood of its tokens after `prompt`, in nats, shape (tokens,)."""

    @abstractmethod
    def greedy(self, prompt: Sequence[int], end: int, limit: int) -> list[int]:
        """Return the likeliest tokens one after another, up to `end` (left out) or `limit` of them."""


class TransformersRuntime(CausalRuntime):
    """A model of transformers, on the device that it lies on.

    Args:
        model: the model; it is put into evaluation mode for each question, and back.
        what: what was read, for the name.
    """

    def __init__(self, model: PreTrainedModel | PeftModel, what: str = "safetensors") -> None:
        self._model = model
        self.name = f"transformers {transformers.__version__} ({what})"

    def log_likelihoods(self, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> list[Floats]:
        """Read the prompt once and go on from it with every answer."""
        with self._inference():
            first, cache = self._read(prompt)
            found: list[Floats] = []
            for start in range(0, len(answers), ANSWERS_AT_ONCE):
                found += self._go_on(first, cache, answers[start : start + ANSWERS_AT_ONCE])
        return found

    def _go_on(self, first: Tensor, cache: DynamicCache, answers: Sequence[Sequence[int]]) -> list[Floats]:
        """Score a few answers; shorter ones are padded behind their last token, which nothing before it sees."""
        longest = max(map(len, answers))
        logits = first.expand(len(answers), 1, -1)
        if longest > 1:
            padded = [[*answer[:-1], *[0] * (longest - len(answer))] for answer in answers]
            own = copy.deepcopy(cache)
            own.batch_repeat_interleave(len(answers))
            more = self._model(input_ids=self._tensor(padded), cache=own, use_cache=True).logits
            logits = torch.cat([logits, more], dim=1)
        rows = logits.float().cpu().numpy()
        return [token_log_likelihoods(row[: len(answer)], answer) for row, answer in zip(rows, answers, strict=True)]

    def greedy(self, prompt: Sequence[int], end: int, limit: int) -> list[int]:
        """Take the likeliest token again and again, of equal ones the first."""
        tokens: list[int] = []
        with self._inference():
            logits, cache = self._read(prompt)
            while len(tokens) < limit:
                token = int(np.argmax(logits[0, -1].float().cpu().numpy()))
                if token == end:
                    break
                tokens.append(token)
                logits = self._model(input_ids=self._tensor([[token]]), cache=cache, use_cache=True).logits
        return tokens

    def _read(self, prompt: Sequence[int]) -> tuple[Tensor, DynamicCache]:
        """Return the logits after the prompt, shape (1, 1, vocabulary), and the state to go on from."""
        cache = DynamicCache(config=self._model.config)
        ids = self._tensor([list(prompt)])
        logits = self._model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1).logits
        return logits, cache

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(rows, dtype=torch.long, device=self._model.device)

    @contextmanager
    def _inference(self) -> Iterator[None]:
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self._model.train(was_training)
