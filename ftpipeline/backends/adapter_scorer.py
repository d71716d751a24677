"""Score texts with a classifier's adapter on its base model, in transformers."""

from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from ftpipeline.backends.adapter_load import load_adapted
from ftpipeline.backends.probabilities import softmax
from ftpipeline.backends.threads import serving_threads
from ftpipeline.errors import ExportCheckError
from ftpipeline.steps.artifact import read_export_record
from ftpipeline.steps.base_pin import check_base
from ftpipeline.steps.ports import Progress, Scorer, Scores


class AdapterScorer(Scorer):
    """Runs one text at a time, so that no answer depends on the texts beside it.

    Args:
        base_model: folder of the base model that artifacts are adapters on; None until `on` names it.
    """

    code_version = "1"

    def __init__(self, base_model: Path | None = None) -> None:
        self._base_model = base_model

    def on(self, base_model: Path) -> "AdapterScorer":
        """Return a scorer of adapters on this base model."""
        return AdapterScorer(base_model)

    def runtime(self, artifact: Path) -> str:
        """Return the library that answers, with its version, and what it reads."""
        return f"transformers {transformers.__version__} (adapter on its base)"

    def _score(self, artifact: Path, texts: Sequence[str], batch_size: int, progress: Progress) -> Scores:
        if self._base_model is None:
            raise ExportCheckError(
                "an adapter is scored on its base model; name it, or set export.merge_adapter to true"
            )
        check_base(self._base_model, artifact)
        torch.set_num_threads(serving_threads())
        record = read_export_record(artifact)
        model = load_adapted(artifact, self._base_model, record.task)
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            artifact, local_files_only=True, trust_remote_code=False
        )
        predicted: list[int] = []
        confidence: list[float] = []
        for text in texts:
            encoded = tokenizer(text, truncation=True, max_length=record.max_length, return_tensors="pt")
            with torch.no_grad():
                probabilities = softmax(model(**encoded).logits[0].numpy())
            predicted.append(int(probabilities.argmax()))
            confidence.append(float(probabilities.max()))
            if len(predicted) % batch_size == 0 or len(predicted) == len(texts):
                progress(len(predicted), len(texts), "texts scored")
        return Scores(predicted, confidence)
