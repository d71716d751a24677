"""A stage's facts as Dagster metadata: what a person looks for first, then the rest, digests and keys last."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from ftpipeline.orchestration import plots
from ftpipeline.orchestration.metadata import Metadata, fact, facts, table
from ftpipeline.records import Facts, StepResult

_WORST_WEIGHTS = 5


def present(stage: str, result: StepResult, origin: Metadata) -> Metadata:
    """Return what the UI shows of a finished stage.

    Args:
        stage: name of the stage.
        result: its outcome.
        origin: where the output comes from; shown after what the stage says itself.
    """
    view = _VIEWS.get(stage, _PLAIN)
    rest = {name: value for name, value in result.facts.items() if name not in view.takes}
    return {
        **view.shows(result.facts),
        **origin,
        **facts(rest),
        "action": dg.MetadataValue.text(str(result.action)),
        "seconds of this run": dg.MetadataValue.float(round(result.seconds, 3)),
        "digest": dg.MetadataValue.text(result.output),
        "step key": dg.MetadataValue.text(result.key),
    }


@dataclass(frozen=True)
class _View:
    """How a stage shows some of its facts; those that it does not take are shown one by one."""

    shows: Callable[[Facts], Metadata]
    takes: frozenset[str]


def _rows_kept(facts: Facts) -> Metadata:
    labels: Mapping[str, int] = facts["labels"]
    picture = plots.inline(plots.bars(labels), "label distribution")
    return {"label distribution": dg.MetadataValue.md(picture), "labels": fact("labels", labels)}


def _curate(facts: Facts) -> Metadata:
    return {"stages": table(facts["stages"], ("stage", "before", "after")), **_rows_kept(facts)}


def _split(facts: Facts) -> Metadata:
    by_label = {row["label"]: row["train"] for row in facts["labels"]}
    picture = plots.inline(plots.bars(by_label), "training rows by label")
    missing = [{"part": part, "label": label} for part, labels in facts["missing_labels"].items() for label in labels]
    return {
        **leakage(facts),
        "label distribution": dg.MetadataValue.md(picture),
        "labels": table(facts["labels"], ("label", "train", "validation")),
        "missing labels": table(missing),
    }


def leakage(facts: Facts) -> Metadata:
    """Return what a split found that train rows share with validation and eval rows."""
    found = facts["leakage"]
    return {
        "leakage": dg.MetadataValue.text(f"{found['verdict']} ({found['method']}, threshold {found['threshold']})"),
        "leaked": dg.MetadataValue.int(facts["leaked"]),
        "leaks": table(facts["leaks"], ("eval_set", "rows_checked", "leaked")),
    }


def _train(facts: Facts) -> Metadata:
    losses = [(float(step), float(loss)) for step, loss in facts["loss_curve"]]
    validation = [(float(facts["steps"]), float(facts["validation"]["loss"]))]
    drawn = plots.curves({"training loss": losses, "validation loss at the end": validation}, "optimizer step")
    return {"loss curve": dg.MetadataValue.md(plots.inline(drawn, "loss curve"))}


def _export(facts: Facts) -> Metadata:
    if "quantization_errors" not in facts:  # the served file keeps the trained precision
        return {}
    errors = sorted(facts["quantization_errors"].items(), key=lambda item: -item[1])
    return {"largest quantization errors": fact("quantization_errors", dict(errors[:_WORST_WEIGHTS]))}


def _evaluate(facts: Facts) -> Metadata:
    rows = [
        {
            "artifact": side.partition("_")[0],
            "eval set": side.partition("_")[2],
            **report["metrics"],
            **report["counts"],
        }
        for side, report in facts["evaluations"].items()
    ]
    counts = {(cell["expected"], cell["predicted"]): cell["count"] for cell in facts["confusion"]}
    picture = plots.inline(plots.heatmap(counts), "confusion matrix of the candidate on the task set")
    return {"scores": table(rows, ("artifact", "eval set", "macro_f1")), "confusion": dg.MetadataValue.md(picture)}


def _manifest(facts: Facts) -> Metadata:
    return {"manifest": dg.MetadataValue.json(facts["manifest"])}


def gate(facts: Facts) -> Metadata:
    """Return a gate's verdict, the two sides of its comparison, and its reasons."""
    metrics: Mapping[str, Mapping[str, Any] | None] = facts["metrics"]
    candidate, production = metrics["candidate"] or {}, metrics["production"] or {}
    rows = [
        {
            "eval set": role,
            "candidate": value,
            "production": production.get(role),
            "difference": facts["differences"].get(role),
            **_interval(facts["intervals"].get(role)),
        }
        for role, value in candidate.items()
    ]
    return {
        "verdict": dg.MetadataValue.text(facts["verdict"]),
        "comparison": table(rows),
        "reasons": fact("reasons", facts["reasons"]),
    }


def _interval(interval: Mapping[str, float] | None) -> dict[str, str]:
    return {} if interval is None else {"95 % interval": f"{interval['low']:+.4f} to {interval['high']:+.4f}"}


def _register(facts: Facts) -> Metadata:
    return {name: fact(name, facts[name]) for name in ("name", "stage", "verdict", "reasons")}


_PLAIN = _View(lambda facts: {}, frozenset())
_VIEWS: Mapping[str, _View] = {
    "snapshot": _View(_rows_kept, frozenset({"labels"})),
    "curate": _View(_curate, frozenset({"stages", "labels"})),
    "split": _View(_split, frozenset({"leakage", "leaked", "leaks", "labels", "missing_labels"})),
    "manifest": _View(_manifest, frozenset({"manifest"})),
    "train": _View(_train, frozenset({"loss_curve"})),
    "export": _View(_export, frozenset({"quantization_errors"})),
    "evaluate": _View(_evaluate, frozenset({"evaluations", "confusion", "metrics"})),
    "gate": _View(gate, frozenset({"verdict", "metrics", "differences", "reasons", "intervals"})),
    "register": _View(_register, frozenset({"name", "stage", "verdict", "reasons", "artifact", "manifest"})),
}
