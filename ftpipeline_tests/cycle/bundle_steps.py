"""Made-up steps with the outputs that a bundle looks into; they reach no more code than they must."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.digest import canonical_json, of_bytes
from ftpipeline.records import Facts, StepKind, step

WINDOW = {"start": "2026-08-04T00:00:00+00:00", "end": "2026-11-02T00:00:00+00:00", "timezone": "UTC"}
RAW_ROW = b"a ticket that must not leave the store"
WEIGHTS = b"weights that are too large for a bundle"


@step("snapshot", code_version="1", kind=StepKind.SOURCE)
def snapshot(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    query = params["query"]
    record = {"query": query, "query_sha256": of_bytes(query.encode()), "window": WINDOW, "counts": {"read": 1}}
    (out / "record.json").write_bytes(canonical_json(record))
    (out / "rows.parquet").write_bytes(RAW_ROW)
    return {}


@step("manifest", code_version="1")
def manifest(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    (out / "manifest.json").write_bytes(canonical_json(params["manifest"]))
    return {}


@step("train", code_version="1")
def train(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    (out / "model.safetensors").write_bytes(WEIGHTS + (inputs["snapshot"] / "rows.parquet").read_bytes())
    return {}


@step("evaluate", code_version="1")
def evaluate(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    (out / "report.json").write_bytes(canonical_json({"score": 0.5}))
    return {}
