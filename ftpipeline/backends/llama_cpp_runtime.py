"""A GGUF file in llama.cpp, where llama-cpp-python is installed."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ftpipeline.backends.causal_runtime import CausalRuntime
from ftpipeline.backends.label_scoring import Floats, token_log_likelihoods
from ftpipeline.backends.threads import serving_threads


def is_installed() -> bool:
    """Tell whether llama-cpp-python can be imported."""
    return importlib.util.find_spec("llama_cpp") is not None


class LlamaCppRuntime(CausalRuntime):
    """Runs a GGUF file on the CPU.

    Args:
        model: the file.
        length: tokens of the longest prompt and answer together.
    """

    def __init__(self, model: Path, length: int) -> None:
        import llama_cpp  # optional

        threads = serving_threads()
        self.name = f"llama-cpp-python {llama_cpp.__version__}"
        self._llama = llama_cpp.Llama(
            str(model),
            n_ctx=length,
            n_batch=length,
            n_ubatch=length,
            n_threads=threads,
            n_threads_batch=threads,
            n_gpu_layers=0,
            logits_all=True,
            verbose=False,
        )

    def log_likelihoods(self, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> list[Floats]:
        """Read the prompt once; each answer goes on from it after the one before is forgotten."""
        self._start(prompt)
        found = []
        for answer in answers:
            self._llama.n_tokens = len(prompt)
            if len(answer) > 1:
                self._llama.eval(list(answer[:-1]))
            logits = np.array(self._llama.scores[len(prompt) - 1 : len(prompt) - 1 + len(answer)])
            found.append(token_log_likelihoods(logits, answer))
        return found

    def greedy(self, prompt: Sequence[int], end: int, limit: int) -> list[int]:
        """Take the likeliest token again and again, of equal ones the first."""
        self._start(prompt)
        tokens: list[int] = []
        while len(tokens) < limit:
            token = int(np.argmax(self._llama.scores[self._llama.n_tokens - 1]))
            if token == end:
                break
            tokens.append(token)
            self._llama.eval([token])
        return tokens

    def _start(self, prompt: Sequence[int]) -> None:
        self._llama.reset()
        self._llama.eval(list(prompt))
