"""The exported artifact: which files its folder holds, and the record that says how to serve it.

Round-trip law: `read_export_record(folder) == record` after `write_export_record(folder, record)`.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ftpipeline.digest import canonical_json
from ftpipeline.errors import ExportCheckError
from ftpipeline.schema import DigestText, Hex64, Positive, Section, Texts
from ftpipeline.steps.calibrate import Calibration
from ftpipeline.steps.tokenizer import tokenizer_files

MODEL_FILE = "model.onnx"
LABELS_FILE = "labels.json"
CONFIG_FILE = "config.json"
RECORD_FILE = "export.json"

_OWN_FILES = frozenset({MODEL_FILE, LABELS_FILE, CONFIG_FILE, RECORD_FILE})
_REQUIRED_FILES = _OWN_FILES | {"tokenizer.json", "tokenizer_config.json"}


class ExportRecord(Section):
    """What a server must know of an exported classifier beside its files.

    Attributes:
        format_version: version of this record.
        task: what the model does.
        labels: answers by class id.
        max_length: tokens that a text is truncated to, special tokens included.
        quantize: how the weights are stored.
        base_model: digest of the base model's tree.
        tokenizer_sha256: digest over the tokenizer's files, 64 hexadecimal digits.
        abstention: the calibrated threshold; None only while it is being calibrated.
    """

    format_version: Literal[1] = 1
    task: Literal["sequence_classification"]
    labels: Annotated[Texts, Field(min_length=2)]
    max_length: Positive
    quantize: Literal["int8", "none"]
    base_model: DigestText
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
        return ExportRecord.model_validate_json((folder / RECORD_FILE).read_bytes())
    except OSError as error:
        raise ExportCheckError(f"{RECORD_FILE} cannot be read ({error.strerror}); export the model again") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise ExportCheckError(f"{RECORD_FILE}: {field}: {first['msg']}; export the model again") from error


def check_files(folder: Path) -> None:
    """Refuse an export folder that cannot be served from its own files, or that holds others.

    Raises:
        ExportCheckError: a needed file is missing or empty, or a file is there that nothing needs.
    """
    present = {file.relative_to(folder).as_posix(): file.stat().st_size for file in folder.rglob("*") if file.is_file()}
    missing = sorted(name for name in _REQUIRED_FILES if not present.get(name))
    if missing:
        raise ExportCheckError(f"export folder lacks {', '.join(missing)}; export from a complete base model")
    known = _OWN_FILES | {file.as_posix() for file in tokenizer_files(folder)}
    unknown = sorted(present.keys() - known)
    if unknown:
        raise ExportCheckError(f"export folder holds {', '.join(unknown)}, which no server needs; export it again")
