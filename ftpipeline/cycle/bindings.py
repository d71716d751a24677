"""Which implementation stands behind each port. Named, not imported: a hit must load nothing."""

from collections.abc import Collection, Mapping
from pathlib import Path

from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundPort, BoundStep
from ftpipeline.steps.base_model import base_model
from ftpipeline.steps.curate import curate
from ftpipeline.steps.eval_set import eval_set
from ftpipeline.steps.evaluate import evaluate
from ftpipeline.steps.export import export
from ftpipeline.steps.gate import gate
from ftpipeline.steps.manifest import manifest
from ftpipeline.steps.noise_band import noise_band
from ftpipeline.steps.replay import replay
from ftpipeline.steps.report import report
from ftpipeline.steps.row_formats import Dialect
from ftpipeline.steps.snapshot import snapshot
from ftpipeline.steps.split import split
from ftpipeline.steps.train import train

HUB = BoundPort("ftpipeline.backends.hub:HuggingFaceHub")
CONVERTER = BoundPort("ftpipeline.backends.gguf_model:GgufConverter")
SUBPROCESS_LAUNCHER = BoundPort("ftpipeline.cycle.launch:SubprocessLauncher", keyed=False)
TRAIN_WORKERS = ("ftpipeline.backends.train_worker",)

CURATE = BoundStep(curate)
SPLIT = BoundStep(split)
MANIFEST = BoundStep(manifest)
REPORT = BoundStep(report)
GATE = BoundStep(gate)
NOISE_BAND = BoundStep(noise_band)


_CLASSIFIER, _CAUSAL, _ADAPTERS = "sequence_classification", "causal_lm", "ftpipeline.backends.adapter_export"
_EXPORTERS: Mapping[tuple[str, bool], BoundPort] = {
    (_CLASSIFIER, True): BoundPort("ftpipeline.backends.onnx_export:OnnxExporter"),
    (_CLASSIFIER, False): BoundPort(f"{_ADAPTERS}:AdapterExporter"),
    (_CAUSAL, True): BoundPort("ftpipeline.backends.causal_export:CausalExporter"),
    (_CAUSAL, False): BoundPort(f"{_ADAPTERS}:AdapterExporter"),
}
_SCORERS: Mapping[tuple[str, bool], BoundPort] = {
    (_CLASSIFIER, True): BoundPort("ftpipeline.backends.onnx_scorer:OnnxScorer"),
    (_CLASSIFIER, False): BoundPort("ftpipeline.backends.adapter_scorer:AdapterScorer"),
    (_CAUSAL, True): BoundPort("ftpipeline.backends.causal_scorer:CausalScorer"),
    (_CAUSAL, False): BoundPort("ftpipeline.backends.causal_scorer:CausalScorer"),
}
"""By task, and whether the adapter is merged: no key depends on the code of a form that is not used."""


def bound_export(task: str, merged: bool) -> BoundStep:
    """Bind what exports, and what serves, a model of `task`, with its adapter merged or alone."""
    return BoundStep(export, {"exporter": _EXPORTERS[task, merged], "scorer": _SCORERS[task, merged]})


def bound_evaluate(task: str, merged: bool) -> BoundStep:
    """Bind what serves an artifact of `task`, with its adapter merged or alone."""
    return BoundStep(evaluate, {"scorer": _SCORERS[task, merged]})


EXPORT = bound_export(_CLASSIFIER, merged=True)
EVALUATE = bound_evaluate(_CLASSIFIER, merged=True)
"""What a merged classifier is exported and evaluated by."""


def duckdb_source(database: Path) -> BoundPort:
    """Name the port of a DuckDB file; its place is in no key."""
    return BoundPort("ftpipeline.steps.sources:DuckDBSource", {"path": database})


def postgres_source(name: str, variable: str) -> BoundPort:
    """Name the port of a PostgreSQL connection."""
    return BoundPort("ftpipeline.steps.postgres:PostgresSource", {"name": name, "variable": variable})


def file_source(path: Path, dialect: Dialect) -> BoundPort:
    """Name the port of a ticket file; its place is in no key."""
    return BoundPort("ftpipeline.steps.row_files:RowFile", {"path": path, "dialect": dialect})


def bound_snapshot(source: BoundPort, erased: Collection[Digest]) -> BoundStep:
    """Bind the source, and whose rows are not taken in any more.

    Erased keys are in no key: what was frozen before is redacted where it stands, not asked for anew.
    """
    keys = BoundPort("ftpipeline.steps.erased_keys:ErasedKeys", {"digests": erased})
    return BoundStep(snapshot, {"source": source, "erased": keys})


def bound_eval_set(file: Path) -> BoundStep:
    """Bind an eval set's file; its content is in the key, its place is not."""
    return BoundStep(eval_set, {"file": BoundPort("ftpipeline.steps.sources:FileSource", {"path": file})})


def bound_base_model(folder: Path | None) -> BoundStep:
    """Bind a local folder, or the hub where there is none."""
    place = BoundPort("ftpipeline.steps.base_model:ModelFolder", {"path": folder})
    return BoundStep(base_model, {"hub": HUB, "folder": place, "converter": CONVERTER})


def bound_train(launcher: BoundPort) -> BoundStep:
    """Bind a launcher; the worker it starts is part of the key."""
    return BoundStep(train, {"launcher": launcher}, TRAIN_WORKERS)


def bound_replay(launcher: BoundPort) -> BoundStep:
    """Bind a launcher for a replay of a training, which the same worker makes."""
    return BoundStep(replay, {"launcher": launcher}, TRAIN_WORKERS)
