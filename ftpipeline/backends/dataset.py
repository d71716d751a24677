"""Rows of a split as the Trainer takes them: token ids and class ids, encoded once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute
import pyarrow.parquet
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.errors import EmptyResultError, LabelError
from ftpipeline.pipeline import ABSTAIN
from ftpipeline.steps.tables import ROWS

_CHUNK_ROWS = 1024


class EncodedRows(Dataset[dict[str, Any]]):
    """Rows with their token ids and class id; batches are padded by the collator, to their longest row."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._rows[index]


@dataclass(frozen=True)
class Encoder:
    """How text becomes token ids, and a label its class id.

    Attributes:
        tokenizer: the base model's own.
        labels: label of each class id.
        max_length: tokens after which a text is cut.
        stop: asked between chunks.
    """

    tokenizer: PreTrainedTokenizerBase
    labels: Sequence[str]
    max_length: int
    stop: StopRequest

    def encode(self, path: Path) -> EncodedRows:
        """Return the rows of a split's Parquet file in the file's order.

        Raises:
            EmptyResultError: the file has no row.
            LabelError: a label is outside the list.
        """
        table = pyarrow.parquet.read_table(path, columns=["text", "label"])
        if not table.num_rows:
            raise EmptyResultError(f"{path.name} has no row; widen the window or relax curation")
        texts, classes = table["text"].to_pylist(), self._classes(table["label"].to_pylist(), path.name)
        rows: list[dict[str, Any]] = []
        for start in range(0, len(texts), _CHUNK_ROWS):
            self.stop.check("while the rows were encoded")
            rows += self._encode_chunk(texts[start : start + _CHUNK_ROWS], classes[start : start + _CHUNK_ROWS])
        return EncodedRows(rows)

    def _classes(self, labels: Sequence[str], where: str) -> list[int]:
        ids = {label: index for index, label in enumerate(self.labels)}
        try:
            return [ids[label] for label in labels]
        except KeyError as error:
            raise LabelError(f"{where} holds the label {error}, which is not in the list; curate again") from error

    def _encode_chunk(self, texts: list[str], classes: Sequence[int]) -> list[dict[str, Any]]:
        encoded = self.tokenizer(texts, truncation=True, max_length=self.max_length, padding=False)
        names = [name for name in self.tokenizer.model_input_names if name in encoded]
        columns = zip(*(encoded[name] for name in names), strict=True)
        return [
            dict(zip(names, row, strict=True)) | {"labels": label} for row, label in zip(columns, classes, strict=True)
        ]


def labelled_rows(eval_set: Path, folder: Path) -> Path:
    """Write an eval set's rows that expect a label into `folder` as a split has them, and return the file.

    A model in training answers with a label only: whether it should have abstained is not known before calibration.
    """
    table = pyarrow.parquet.read_table(eval_set / ROWS, columns=["text", "expected"]).rename_columns(["text", "label"])
    target = folder / "regression.parquet"
    pyarrow.parquet.write_table(table.filter(pyarrow.compute.not_equal(table["label"], ABSTAIN)), target)
    return target
