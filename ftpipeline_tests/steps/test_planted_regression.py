"""A model that is good until it is exported: only the exported file is measured, and only its measure counts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.errors import GateRecordError
from ftpipeline.records import Verdict
from ftpipeline.schema import ROLES
from ftpipeline.steps.artifact import ExportRecord, write_export_record
from ftpipeline.steps.calibrate import Calibration
from ftpipeline.steps.evaluate import evaluate
from ftpipeline.steps.gate import gate
from ftpipeline.steps.ports import Progress, Scorer, Scores
from ftpipeline.steps.report import report
from ftpipeline_tests.steps.simulators import LABELS

ROWS = 300
GATES = {"task_min_gain_vs_prod": 0.05, "regression_max_drop": 0.02, "safety_max_drop": 0.02}
MANIFEST = of_bytes(b"manifest")


class FileScorer(Scorer):
    """Answers right on as many rows of each hundred as the artifact's file says."""

    def _score(self, artifact: Path, texts: Sequence[str], batch_size: int, progress: Progress) -> Scores:
        right = int((artifact / "model.onnx").read_text())
        truth = [LABELS.index(text.split()[0]) for text in texts]
        known = [int(text.split()[1]) % 100 < right for text in texts]
        return Scores(
            [t if k else (t + 1) % len(LABELS) for t, k in zip(truth, known, strict=True)], [1.0] * len(texts)
        )


class Bench:
    """Artifacts of a known quality, and the steps from evaluation to gate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = [
            (f"r{i}", f"{LABELS[i % len(LABELS)]} {i // len(LABELS)}", LABELS[i % len(LABELS)]) for i in range(ROWS)
        ]
        table = pyarrow.table(dict(zip(("id", "text", "expected"), map(list, zip(*rows, strict=True)), strict=True)))
        self.eval_set = self.fresh("eval_set")
        pyarrow.parquet.write_table(table, self.eval_set / "rows.parquet")
        (self.eval_set / "eval_set.json").write_text('{"name": "gold", "version": "v1"}')

    def fresh(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        return folder

    def artifact(self, name: str, right: int) -> Digest:
        """Store an artifact that is right on so many rows of each hundred."""
        folder = self.fresh(name)
        (folder / "model.onnx").write_text(str(right))
        record = ExportRecord(
            task="sequence_classification",
            labels=LABELS,
            max_length=16,
            quantize="int8",
            base_model=of_bytes(b"base"),
            tokenizer_sha256=64 * "0",
            abstention=Calibration(0.5, 20, 1, 0.05),
        )
        write_export_record(folder, record)
        return of_bytes(name.encode())

    def evaluations(self, about: str, side: str, name: str, artifact: Digest) -> Mapping[str, Path]:
        folders = {f"{side}_{role}": self.fresh(f"{about}/{side}_{role}") for role in ROLES}
        for role, out in zip(ROLES, folders.values(), strict=True):
            params: dict[str, Any] = {"artifact": artifact, "eval_set": of_bytes(role.encode()), "role": role}
            params |= {"labels": list(LABELS), "evaluation": {"batch_size": 64}}
            inputs = {"artifact": self.folder / name, "eval_set": self.eval_set}
            evaluate(inputs, params, out, scorer=FileScorer())
        return folders

    def gate(self, candidate: Digest, measured: str, claimed: Digest, production: Digest) -> dict[str, Any]:
        """Gate an artifact on the measure of the model `measured`, which was taken as the artifact `claimed`."""
        joined, out = self.fresh(f"report of {measured}"), self.fresh(f"gate of {measured}")
        inputs = {
            **self.evaluations(f"scores of {measured}", "candidate", measured, claimed),
            **self.evaluations(f"scores of {measured}", "production", "production", production),
        }
        report(inputs, {"candidate": claimed, "production": production}, joined)
        params = {
            "gates": GATES,
            "manifest": MANIFEST,
            "candidate": candidate,
            "production": {"digest": production, "generation": 1},
            "noise_band": None,
        }
        gate({"report": joined}, params, out)
        return dict(json.loads((out / "gate.json").read_bytes()))


@pytest.mark.parametrize("damage", ["merge", "quantisation"])
def test_a_regression_in_the_exported_file_fails_though_the_unexported_model_would_pass(
    tmp_path: Path, damage: str
) -> None:
    bench = Bench(tmp_path)
    production, exported = bench.artifact("production", 70), bench.artifact("exported", 62 if damage == "merge" else 69)
    unexported = bench.artifact("unexported", 85)
    would_be = bench.gate(unexported, "unexported", unexported, production)
    assert would_be["verdict"] == Verdict.PASS
    verdict = bench.gate(exported, "exported", exported, production)
    assert verdict["verdict"] == Verdict.FAIL
    assert verdict["reasons"][0]["code"] == "task_gain_below_threshold"


def test_the_measure_of_the_unexported_model_does_not_speak_for_the_exported_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    production, exported = bench.artifact("production", 70), bench.artifact("exported", 62)
    unexported = bench.artifact("unexported", 85)
    with pytest.raises(GateRecordError, match=f"is about {unexported}, not about {exported}"):
        bench.gate(exported, "unexported", unexported, production)
