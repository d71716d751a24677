"""The exported artifact: which files its folder holds, and the record that says how to serve it.

Round-trip law: `read_export_record(folder) == record` after `write_export_record(folder, record)`.
"""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ftpipeline.digest import canonical_json
from ftpipeline.errors import ExportCheckError
from ftpipeline.schema import DigestText, Hex64, Positive, Section, Task, Texts
from ftpipeline.steps.calibrate import Calibration
from ftpipeline.steps.model_files import GGUF_FILE, missing_files
from ftpipeline.steps.tokenizer import tokenizer_files
from ftpipeline.steps.train_output import CONFIG_FILE as ADAPTER_CONFIG
from ftpipeline.steps.train_output import WEIGHTS_FILE as ADAPTER_WEIGHTS
from ftpipeline.steps.weight_files import INDEX, SINGLE, read_object

MODEL_FILE = "model.onnx"
LABELS_FILE = "labels.json"
CONFIG_FILE = "config.json"
RECORD_FILE = "export.json"

_TOKENIZER = frozenset({"tokenizer.json", "tokenizer_config.json"})
_CLASSIFIER = frozenset({MODEL_FILE, LABELS_FILE, CONFIG_FILE, RECORD_FILE})
_ADAPTER = frozenset({ADAPTER_WEIGHTS, ADAPTER_CONFIG, LABELS_FILE, RECORD_FILE})
_CAUSAL = frozenset({LABELS_FILE, CONFIG_FILE, RECORD_FILE})


class ExportRecord(Section):
    """What a server must know of an exported model beside its files.

    Attributes:
        format_version: version of this record.
        task: what the model does.
        labels: answers by class id.
        max_length: tokens that a text is truncated to, special tokens included.
        quantize: how the weights are stored.
        base_model: digest of the base model's tree.
        merge_adapter: False where the folder holds an adapter only, which is served on that base model.
        prompt: the user's turn that a causal model is asked with; None for a classifier.
        tokenizer_sha256: digest over the tokenizer's files, 64 hexadecimal digits.
        abstention: the calibrated threshold; None only while it is being calibrated.
    """

    format_version: Literal[1] = 1
    task: Task
    labels: Annotated[Texts, Field(min_length=2)]
    max_length: Positive
    quantize: Literal["int8", "none"]
    base_model: DigestText
    merge_adapter: bool = True
    prompt: str | None = None
    tokenizer_sha256: Hex64
    abstention: Calibration | None = None

    def threshold(self) -> float:
        """Return the confidence under which an answer is an abstention.

        Raises:
            ExportCheckError: the artifact was never calibrated.
        """
        if self.abstention is None:
            raise ExportCheckError(f"{RECORD_FILE} holds no abstention threshold; export the model again")
        return self.abstention.threshold


def write_export_record(folder: Path, record: ExportRecord) -> None:
    """Write `record` into an export folder, as canonical JSON."""
    (folder / RECORD_FILE).write_bytes(canonical_json(record.model_dump(mode="json")))


def read_export_record(folder: Path) -> ExportRecord:
    """Read the record of an export folder.

    Raises:
        ExportCheckError: it is missing, or not a record of a version that is known here.
    """
    try:
        data = (folder / RECORD_FILE).read_bytes()
    except OSError as error:
        raise ExportCheckError(f"{RECORD_FILE} cannot be read ({error.strerror}); export the model again") from error
    return parse_export_record(data)


def parse_export_record(data: bytes) -> ExportRecord:
    """Return the content of `export.json` as a record.

    Raises:
        ExportCheckError: it is not a record of a version that is known here.
    """
    try:
        return ExportRecord.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise ExportCheckError(f"{RECORD_FILE}: {field}: {first['msg']}; export the model again") from error


def check_files(folder: Path) -> None:
    """Refuse an export folder that cannot be served from its own files, or that holds others.

    Raises:
        ExportCheckError: a needed file is missing or empty, or a file is there that nothing needs.
    """
    record = read_export_record(folder)
    present = {file.relative_to(folder).as_posix(): file.stat().st_size for file in folder.rglob("*") if file.is_file()}
    filled = {name for name, size in present.items() if size}
    own = _own_files(record, folder)
    missing = (own | _TOKENIZER) - filled
    if record.task == "causal_lm" and record.merge_adapter:
        missing |= {*missing_files(filled | own, template_in_config=_holds_template(folder))}
    if missing:
        raise ExportCheckError(f"export folder lacks {', '.join(sorted(missing))}; export from a complete base model")
    known = own | {file.as_posix() for file in tokenizer_files(folder)}
    unknown = sorted(present.keys() - known)
    if unknown:
        raise ExportCheckError(f"export folder holds {', '.join(unknown)}, which no server needs; export it again")


def _own_files(record: ExportRecord, folder: Path) -> frozenset[str]:
    if not record.merge_adapter:
        return _ADAPTER
    if record.task != "causal_lm":
        return _CLASSIFIER
    if record.quantize == "int8":
        return _CAUSAL | {GGUF_FILE}
    if (folder / INDEX).is_file():
        return _CAUSAL | {INDEX, *read_object(folder, INDEX).get("weight_map", {}).values()}
    return _CAUSAL | {SINGLE}


def _holds_template(folder: Path) -> bool:
    """Tell whether the tokenizer's configuration holds its chat template, as older models' do."""
    path = folder / "tokenizer_config.json"
    return path.is_file() and "chat_template" in json.loads(path.read_text(encoding="utf-8"))
