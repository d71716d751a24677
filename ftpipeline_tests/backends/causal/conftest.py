"""One tiny Llama, adapter and export for all tests of causal models."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from ftpipeline.backends.causal_export import CausalExporter
from ftpipeline.records import Facts
from ftpipeline_tests.backends.causal.tiny import build_adapter, export_params, write_record
from ftpipeline_tests.tiny_llama import build_tiny_llama


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="session")
def llama_adapter(tmp_path_factory: pytest.TempPathFactory, llama: Path) -> Path:
    return build_adapter(tmp_path_factory.mktemp("llama-adapter") / "adapter", llama)


@dataclass(frozen=True)
class Exported:
    """What one run of the exporter left behind, each folder with its record; no test writes to them."""

    gguf: Path
    merged: Path
    facts: Facts


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, llama: Path, llama_adapter: Path) -> Exported:
    folder = tmp_path_factory.mktemp("llama-exported")
    gguf, merged = folder / "gguf", folder / "merged"
    params = export_params() | {"unquantized_out": str(merged)}
    facts = CausalExporter().export(llama, llama_adapter, params, gguf)
    return Exported(write_record(gguf, llama), write_record(merged, llama, quantize="none"), facts)
