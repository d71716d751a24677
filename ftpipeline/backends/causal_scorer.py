"""Score texts with an exported causal model, in llama.cpp where it is installed, else in transformers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ftpipeline.backends import llama_cpp_runtime
from ftpipeline.backends.adapter_loading import attach
from ftpipeline.backends.causal_model import load_causal
from ftpipeline.backends.causal_prompt import Prompter, load_chat_tokenizer
from ftpipeline.backends.causal_runtime import CausalRuntime, TransformersRuntime
from ftpipeline.backends.label_scoring import label_scores
from ftpipeline.backends.llama_cpp_runtime import LlamaCppRuntime
from ftpipeline.backends.probabilities import softmax
from ftpipeline.backends.threads import serving_threads
from ftpipeline.errors import ExportCheckError, InputError
from ftpipeline.schema import MAX_NEW_TOKENS
from ftpipeline.steps.artifact import read_export_record
from ftpipeline.steps.base_pin import check_base
from ftpipeline.steps.model_files import GGUF_FILE
from ftpipeline.steps.ports import Progress, Scorer, Scores


def open_runtime(artifact: Path, max_length: int) -> CausalRuntime:
    """Load the merged model of an export folder, from that folder alone.

    Args:
        artifact: holds model.gguf, or safetensors weights with their configuration.
        max_length: tokens of the longest prompt and answer together.
    """
    if not (artifact / GGUF_FILE).is_file():
        return TransformersRuntime(load_causal(artifact))
    if llama_cpp_runtime.is_installed():
        return LlamaCppRuntime(artifact / GGUF_FILE, max_length + MAX_NEW_TOKENS)
    return TransformersRuntime(load_causal(artifact, gguf=GGUF_FILE), "GGUF reader")


@dataclass(frozen=True)
class _Loaded:
    """An artifact that can be asked."""

    artifact: Path
    runtime: CausalRuntime
    prompter: Prompter


class CausalScorer(Scorer):
    """Gives each text the label whose spelling is the likeliest answer, one text at a time.

    An artifact that is scored, and then asked for its own words, is loaded once.

    Args:
        base_model: folder of the base model that artifacts are adapters on; None for artifacts that are whole models.
    """

    code_version = "1"

    def __init__(self, base_model: Path | None = None) -> None:
        self._base_model = base_model
        self._last: _Loaded | None = None

    def on(self, base_model: Path) -> "CausalScorer":
        """Return a scorer of adapters on this base model."""
        return CausalScorer(base_model)

    def runtime(self, artifact: Path) -> str:
        """Return the library that answers, with its version, and what it reads."""
        return self._load(artifact).runtime.name

    def _score(self, artifact: Path, texts: Sequence[str], batch_size: int, progress: Progress) -> Scores:
        loaded = self._load(artifact)
        predicted: list[int] = []
        confidence: list[float] = []
        for text in texts:
            likelihoods = loaded.runtime.log_likelihoods(loaded.prompter.prompt(text), loaded.prompter.answers)
            probabilities = softmax(label_scores(likelihoods))
            predicted.append(int(probabilities.argmax()))
            confidence.append(float(probabilities.max()))
            if len(predicted) % batch_size == 0 or len(predicted) == len(texts):
                progress(len(predicted), len(texts), "texts scored")
        return Scores(predicted, confidence)

    def _write(self, artifact: Path, texts: Sequence[str], max_new_tokens: int, progress: Progress) -> list[str]:
        loaded = self._load(artifact)
        end = int(loaded.prompter.tokenizer.eos_token_id)
        written: list[str] = []
        for text in texts:
            tokens = loaded.runtime.greedy(loaded.prompter.prompt(text), end, max_new_tokens)
            written.append(str(loaded.prompter.tokenizer.decode(tokens)))
            progress(len(written), len(texts), "answers written")
        return written

    def _load(self, artifact: Path) -> _Loaded:
        if self._last is None or self._last.artifact != artifact:
            record = read_export_record(artifact)
            if record.prompt is None:
                raise ExportCheckError("export.json holds no prompt, so this is no causal model; export one")
            torch.set_num_threads(serving_threads())
            try:
                prompter = Prompter(load_chat_tokenizer(artifact), record.labels, record.prompt, record.max_length)
                self._last = _Loaded(artifact, self._open(artifact, record.max_length), prompter)
            except InputError as error:
                raise ExportCheckError(f"artifact in {artifact.name} cannot be loaded: {error}") from error
        return self._last

    def _open(self, artifact: Path, max_length: int) -> CausalRuntime:
        if self._base_model is None:
            return open_runtime(artifact, max_length)
        check_base(self._base_model, artifact)
        model = attach(load_causal(self._base_model), artifact, ())
        return TransformersRuntime(model, "adapter on its base")
