"""Step `export`: merge and quantize the trained adapter, and calibrate abstention on the very file that is served."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.errors import EmptyResultError
from ftpipeline.records import Facts, step
from ftpipeline.steps.artifact import ExportRecord, check_files, write_export_record
from ftpipeline.steps.calibrate import Calibration, calibrate
from ftpipeline.steps.metrics import check_labels
from ftpipeline.steps.ports import Exporter, Progress, Scorer, silent
from ftpipeline.steps.tokenizer import check_tokenizer

BATCH_SIZE = 64
"""Validation texts that are handed to the tokenizer together; no answer depends on it."""

_DISTRIBUTIONS = (
    "numpy",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "peft",
    "pyarrow",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
)


@step("export", code_version="1", distributions=_DISTRIBUTIONS)
def export(
    inputs: Mapping[str, Path],
    params: Mapping[str, Any],
    out: Path,
    *,
    exporter: Exporter,
    scorer: Scorer,
    progress: Progress = silent,
) -> Facts:
    """Write the served artifact: model, tokenizer, labels and `export.json` with the abstention threshold.

    Args:
        inputs: `adapter`, the training's output, with the folder `adapter`; `base_model`; `split`, with
            `validation.parquet` (column `text`).
        params: the export projection of the manifest.
        out: receives the artifact.
        exporter: makes the model files.
        scorer: the serving runtime that the threshold is calibrated in.
        progress: hears of scored validation texts.

    Raises:
        ExportCheckError: the adapter does not fit, or the files cannot be served.
        TokenizerMismatchError: the tokenizer is not the pinned one.
        EmptyResultError: there is no validation row.
        LabelError: the label list cannot be used.
    """
    check_labels(params["labels"])
    texts = _validation_texts(inputs["split"])
    record = _record(params)
    with tempfile.TemporaryDirectory(prefix="ftpipeline-unquantized-") as unquantized:
        request = {
            "labels": record.labels,
            "max_length": record.max_length,
            "task": record.task,
            "export": params["export"],
            "unquantized_out": unquantized,
        }
        facts = exporter.export(inputs["base_model"], inputs["adapter"] / "adapter", request, out)
        write_export_record(out, record)
        _check_artifact(out, record)
        if not record.merge_adapter:
            scorer = scorer.on(inputs["base_model"])
        scores = scorer.score(out, texts, batch_size=BATCH_SIZE, progress=progress)
        changed = 0
        if record.quantize != "none":
            write_export_record(Path(unquantized), record.model_copy(update={"quantize": "none"}))
            before = scorer.score(Path(unquantized), texts, batch_size=BATCH_SIZE, progress=progress)
            changed = sum(old != new for old, new in zip(before.predicted, scores.predicted, strict=True))
    calibration = calibrate(scores.confidence, params["abstention"]["max_abstain"])
    write_export_record(out, record.model_copy(update={"abstention": calibration}))
    return facts | _facts(out, calibration, changed)


def _validation_texts(split: Path) -> list[str]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(split / "validation.parquet", columns=["text"])
    texts: list[str] = table["text"].to_pylist()
    if not texts:
        raise EmptyResultError("validation has no row to calibrate abstention on; give split a validation share")
    return texts


def _record(params: Mapping[str, Any]) -> ExportRecord:
    return ExportRecord(
        task=params["task"],
        labels=tuple(params["labels"]),
        max_length=params["train"]["max_length"],
        quantize=params["export"]["quantize"],
        merge_adapter=params["export"]["merge_adapter"],
        prompt=params["train"]["prompt"] if params["task"] == "causal_lm" else None,
        base_model=params["base_model"]["tree_sha256"],
        tokenizer_sha256=params["tokenizer_sha256"],
    )


def _check_artifact(out: Path, record: ExportRecord) -> None:
    check_files(out)
    check_tokenizer(out, record.tokenizer_sha256, "export")


def _facts(out: Path, calibration: Calibration, changed: int) -> Facts:
    return {
        "files": {
            file.relative_to(out).as_posix(): file.stat().st_size for file in sorted(out.rglob("*")) if file.is_file()
        },
        "abstain_threshold": calibration.threshold,
        "validation_rows": calibration.n,
        "validation_abstained": calibration.abstained,
        "validation_abstain_share": calibration.abstained / calibration.n,
        "answers_changed_by_quantization": changed,
    }
