"""The steps on the real runtime: a tiny Llama is trained, exported as GGUF, and the file that is served is scored."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from ftpipeline.backends.adapter_export import AdapterExporter
from ftpipeline.backends.causal_export import CausalExporter
from ftpipeline.backends.causal_scorer import CausalScorer
from ftpipeline.backends.channel import Channel
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.training import train
from ftpipeline.digest import of_file
from ftpipeline.records import Facts
from ftpipeline.schema import ROLES
from ftpipeline.steps.artifact import read_export_record
from ftpipeline.steps.base_pin import base_tree
from ftpipeline.steps.evaluate import evaluate
from ftpipeline.steps.export import export
from ftpipeline.steps.gate_reports import report_problems
from ftpipeline.steps.ports import WorkerRequest
from ftpipeline.steps.report import report
from ftpipeline_tests.backends.causal.tiny import train_params
from ftpipeline_tests.tiny_model import LABELS, build_tiny_split

ARTIFACT, SET = (f"sha256:{64 * letter}" for letter in "12")


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_split(tmp_path_factory.mktemp("split"))


@pytest.fixture(scope="module")
def trained(llama: Path, split: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    request = WorkerRequest("worker", {"base_model": llama, "split": split}, train_params(llama), out)
    train(request, Channel(lambda said: None), StopRequest())
    return out


@pytest.fixture(scope="module")
def eval_set(split: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eval-set")
    rows = pyarrow.parquet.read_table(split / "validation.parquet").rename_columns({"label": "expected"})
    pyarrow.parquet.write_table(rows, folder / "rows.parquet")
    (folder / "eval_set.json").write_text('{"name": "gold", "version": "v1"}', encoding="utf-8")
    return folder


def export_step(llama: Path, split: Path, trained: Path, out: Path, **how: Any) -> Facts:
    """Run the export step with the ports of `how`'s form."""
    out.mkdir()
    params = train_params(llama) | {
        "export": how,
        "abstention": {"max_abstain": 0.0},
        "base_model": {"tree_sha256": base_tree(llama)},
    }
    inputs = {"adapter": trained, "base_model": llama, "split": split}
    exporter = CausalExporter() if how["merge_adapter"] else AdapterExporter()
    return export(inputs, params, out, exporter=exporter, scorer=CausalScorer())


def evaluate_step(artifact: Path, eval_set: Path, role: str, out: Path, **inputs: Path) -> Facts:
    out.mkdir()
    params = {"artifact": ARTIFACT, "eval_set": SET, "role": role, "labels": list(LABELS)}
    settings = {"evaluation": {"batch_size": 4, "max_new_tokens": 8}}
    folders = {"artifact": artifact, "eval_set": eval_set, **inputs}
    return evaluate(folders, params | settings, out, scorer=CausalScorer())


@pytest.fixture(scope="module")
def exported(llama: Path, split: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    out = tmp_path_factory.mktemp("exported") / "out"
    return out, export_step(llama, split, trained, out, merge_adapter=True, quantize="int8")


def test_an_adapter_becomes_a_gguf_file_and_a_report_that_the_gate_can_read(
    exported: tuple[Path, Facts], eval_set: Path, tmp_path: Path
) -> None:
    artifact, facts = exported
    assert facts["files"]["model.gguf"] == (artifact / "model.gguf").stat().st_size
    assert facts["answers_changed_by_quantization"] <= 2
    evaluations = {f"candidate_{role}": tmp_path / role for role in ROLES}
    measured = {role: evaluate_step(artifact, eval_set, role, tmp_path / role) for role in ROLES}
    (tmp_path / "report").mkdir()
    report(evaluations, {"candidate": ARTIFACT, "production": None}, tmp_path / "report")
    written = json.loads((tmp_path / "report" / "candidate.json").read_bytes())
    assert report_problems("candidate", written) == []
    assert written["scorer"].startswith("CausalScorer/1 on ")
    assert measured["task"]["metrics"]["macro_f1"] > 0.6
    assert of_file(tmp_path / "task" / "answers.parquet") == of_file(tmp_path / "safety" / "answers.parquet")


def test_answers_in_its_own_words_are_counted_beside(
    exported: tuple[Path, Facts], eval_set: Path, tmp_path: Path
) -> None:
    measured = evaluate_step(exported[0], eval_set, "task", tmp_path / "out")
    counts = measured["generation"]["counts"]
    assert counts["n"] == measured["counts"]["n"] == 16
    assert 0 <= counts["unparsable"] <= 16 - counts["correct"]
    assert measured["generation"]["unparsable_share"] == counts["unparsable"] / 16
    assert json.loads((tmp_path / "out" / "report.json").read_bytes())["generation"] == measured["generation"]


def test_the_prompt_is_served_that_was_trained(exported: tuple[Path, Facts], llama: Path) -> None:
    record = read_export_record(exported[0])
    assert (record.task, record.prompt) == ("causal_lm", train_params(llama)["train"]["prompt"])


def test_an_adapter_alone_is_scored_on_its_base(
    llama: Path, split: Path, trained: Path, eval_set: Path, tmp_path: Path
) -> None:
    export_step(llama, split, trained, tmp_path / "alone", merge_adapter=False, quantize="none")
    measured = evaluate_step(tmp_path / "alone", eval_set, "task", tmp_path / "out", base_model=llama)
    assert "adapter on its base" in measured["scorer"]["runtime"]
    assert measured["metrics"]["macro_f1"] > 0.6
