"""Ports that behave as the real ones do, with a model so simple that every answer is known beforehand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ftpipeline.records import Facts
from ftpipeline.steps.ports import Exporter, Progress, Scorer, Scores

LABELS = ("billing", "login", "shipping")


class WordExporter(Exporter):
    """Writes the files of an export; its model answers with the label that a text names."""

    def __init__(self, *, extra: str | None = None, lost: str | None = None) -> None:
        self._extra, self._lost = extra, lost

    def _export(self, base_model: Path, adapter: Path, params: Mapping[str, Any], out: Path) -> Facts:
        for folder in (out, *([Path(params["unquantized_out"])] if "unquantized_out" in params else [])):
            folder.mkdir(exist_ok=True)
            files = {"config.json": "{}", "labels.json": json.dumps(list(params["labels"])), "model.onnx": folder.name}
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
            for file in base_model.iterdir():
                (folder / file.name).write_bytes(file.read_bytes())
        if self._extra:
            (out / self._extra).write_text("left behind", encoding="utf-8")
        if self._lost:
            (out / self._lost).unlink()
        return {"max_logit_difference": 0.0}


class WordScorer(Scorer):
    """Answers with the label that a text begins with, at the confidence that it ends with.

    A text with a third word `fragile` is answered otherwise by the served file than by the unquantized one.
    """

    def _score(self, artifact: Path, texts: Sequence[str], batch_size: int, progress: Progress) -> Scores:
        labels = json.loads((artifact / "labels.json").read_text(encoding="utf-8"))
        served = (artifact / "model.onnx").read_text(encoding="utf-8") == "out"
        words = [text.split() for text in texts]
        predicted = [labels.index(word[0]) for word in words]
        shifted = [(p + (served and "fragile" in word)) % len(labels) for p, word in zip(predicted, words, strict=True)]
        progress(len(texts), len(texts), "scored")
        return Scores(shifted, [float(word[-1]) for word in words])
