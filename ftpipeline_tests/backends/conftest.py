"""One tiny base model, adapter and export for all tests of the backends."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from ftpipeline.backends.onnx_export import OnnxExporter
from ftpipeline.digest import hex_of
from ftpipeline.records import Facts
from ftpipeline.steps.artifact import ExportRecord, write_export_record
from ftpipeline.steps.tokenizer import tokenizer_sha256
from ftpipeline_tests.backends.tiny_adapter import build_tiny_adapter
from ftpipeline_tests.tiny_model import LABELS, build_tiny_bert

MAX_LENGTH = 16


def export_params(quantize: str = "int8") -> dict[str, Any]:
    """Return the exporter's parameters for the tiny model."""
    export = {"merge_adapter": True, "quantize": quantize}
    return {"labels": list(LABELS), "max_length": MAX_LENGTH, "export": export}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def base_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_bert(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="session")
def trained_adapter(tmp_path_factory: pytest.TempPathFactory, base_model: Path) -> Path:
    return build_tiny_adapter(tmp_path_factory.mktemp("trained"), base_model, LABELS)


@pytest.fixture
def adapter(tmp_path: Path, trained_adapter: Path) -> Path:
    """A copy of the trained adapter that a test may damage."""
    return Path(shutil.copytree(trained_adapter, tmp_path / "adapter"))


@dataclass(frozen=True)
class Exported:
    """What one run of the exporter left behind."""

    out: Path
    unquantized: Path
    facts: Facts


@pytest.fixture(scope="session")
def one_export(tmp_path_factory: pytest.TempPathFactory, base_model: Path, trained_adapter: Path) -> Exported:
    folder = tmp_path_factory.mktemp("exported")
    out, unquantized = folder / "out", folder / "unquantized"
    params = export_params() | {"unquantized_out": str(unquantized)}
    facts = OnnxExporter().export(base_model, trained_adapter, params, out)
    record = ExportRecord(
        task="sequence_classification",
        labels=LABELS,
        max_length=MAX_LENGTH,
        quantize="int8",
        base_model="sha256:" + 64 * "0",
        tokenizer_sha256=hex_of(tokenizer_sha256(out)),
    )
    write_export_record(out, record)
    return Exported(out, unquantized, facts)


@pytest.fixture(scope="session")
def exported(one_export: Exported) -> Path:
    """The int8 export with its record; no test writes to it."""
    return one_export.out


@pytest.fixture(scope="session")
def unquantized(one_export: Exported) -> Path:
    """The same model before it was quantized, without a record."""
    return one_export.unquantized


@pytest.fixture(scope="session")
def export_facts(one_export: Exported) -> Facts:
    return one_export.facts
