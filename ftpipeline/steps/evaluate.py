"""Step `evaluate`: score one exported artifact, in its serving runtime, on one eval set."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ftpipeline.digest import canonical_json, parse, parse_json
from ftpipeline.errors import CanonicalFormError, EvalSetError, InputError, LabelError
from ftpipeline.pipeline import ABSTAIN
from ftpipeline.records import Facts, step
from ftpipeline.schema import ROLES
from ftpipeline.steps.artifact import read_export_record
from ftpipeline.steps.generation import generation_report
from ftpipeline.steps.metrics import AVERAGING, ClassificationReport, classification_report
from ftpipeline.steps.ports import Progress, Scorer, Scores, silent

REPORT_FILE = "report.json"
ANSWERS_FILE = "answers.parquet"


@step("evaluate", code_version="2", distributions=("numpy", "onnxruntime", "pyarrow", "tokenizers"))
def evaluate(
    inputs: Mapping[str, Path],
    params: Mapping[str, Any],
    out: Path,
    *,
    scorer: Scorer,
    progress: Progress = silent,
) -> Facts:
    """Measure an artifact; nothing of production or of thresholds is known here.

    Args:
        inputs: `artifact`, an export folder; `eval_set`, with `rows.parquet` (columns `id`, `text`, `expected`) and
            `eval_set.json` (`name`, `version`).
            Beside them `base_model` where the artifact is an adapter on it.
        params: the digests `artifact` and `eval_set`; `role`; the declared `labels`; `evaluation` with `batch_size`
            and `max_new_tokens`.
        out: receives `report.json`, `confusion.json` (pairs that occurred) and `answers.parquet` (no text).
        scorer: the serving runtime.
        progress: hears of scored texts.

    Raises:
        LabelError: the artifact answers a label that is not declared.
        EvalSetError: the eval set cannot be read.
        ExportCheckError: the artifact cannot be scored.
    """
    role = _role(params["role"])
    record = read_export_record(inputs["artifact"])
    _check_labels(record.labels, params["labels"])
    name, rows = _eval_set(inputs["eval_set"])
    if not record.merge_adapter:
        scorer = scorer.on(inputs["base_model"])
    settings = params["evaluation"]
    scores = scorer.score(inputs["artifact"], rows["text"], batch_size=settings["batch_size"], progress=progress)
    answers = _answers(scores, record.labels, record.threshold())
    measured = classification_report(rows["expected"], answers, params["labels"])
    report = {
        "artifact": parse(params["artifact"]),
        "eval_set": {"digest": parse(params["eval_set"]), **name},
        "role": role,
        "scorer": {
            "name": type(scorer).__name__,
            "version": scorer.code_version,
            "runtime": scorer.runtime(inputs["artifact"]),
        },
        "averaging": AVERAGING,
        **_measures(role, measured),
    }
    if record.task == "causal_lm":
        written = scorer.write(
            inputs["artifact"], rows["text"], max_new_tokens=settings["max_new_tokens"], progress=progress
        )
        report["generation"] = generation_report(rows["expected"], written, params["labels"])
        report["counts"]["unparsable"] = report["generation"]["counts"]["unparsable"]
    (out / REPORT_FILE).write_bytes(
        canonical_json(report | {"per_label": {label: asdict(c) for label, c in measured.per_label.items()}})
    )
    _write_confusion(out, measured)
    _write_answers(out, {"id": rows["id"], "expected": rows["expected"], "predicted": answers}, scores)
    return report


def _role(role: str) -> str:
    if role not in ROLES:
        raise InputError(f"role {role!r} is unknown; an eval set is one of {', '.join(ROLES)}")
    return role


def _check_labels(trained: Sequence[str], declared: Sequence[str]) -> None:
    """A production model may be older than a label, and is wrong about it; it may not answer what is not declared."""
    unknown = sorted(set(trained) - set(declared))
    if unknown:
        raise LabelError(
            f"the artifact answers {len(unknown)} labels that are not declared, such as {unknown[0]!r}; "
            "declare them, or evaluate an artifact that was trained on the declared list"
        )


def _eval_set(folder: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return an eval set's name and version, and its columns."""
    import pyarrow
    import pyarrow.parquet

    try:
        about = parse_json((folder / "eval_set.json").read_bytes())
        table = pyarrow.parquet.read_table(folder / "rows.parquet", columns=["id", "text", "expected"])
        return {key: about[key] for key in ("name", "version")}, table.to_pydict()
    except (OSError, KeyError, TypeError, CanonicalFormError, pyarrow.ArrowException) as error:
        raise EvalSetError(f"eval set cannot be read ({error}); load it again from its file") from error


def _answers(scores: Scores, labels: Sequence[str], threshold: float) -> list[str]:
    return [
        labels[class_id] if confidence >= threshold else ABSTAIN
        for class_id, confidence in zip(scores.predicted, scores.confidence, strict=True)
    ]


def _measures(role: str, measured: ClassificationReport) -> dict[str, Any]:
    """Return counts, metrics and the one score that the gate compares for `role`.

    Safety is scored by accuracy: of a set that is wholly out of scope, that is the share abstained.
    """
    return {
        "counts": {
            "n": measured.n,
            "correct": measured.correct,
            "abstained": measured.abstained,
            "distinct_predictions": measured.distinct_predictions,
            "distinct_expected": measured.distinct_expected,
        },
        "metrics": {
            "macro_f1": measured.macro_f1,
            "accuracy": measured.accuracy,
            "abstain_share": measured.abstain_share,
        },
        "score": measured.accuracy if role == "safety" else measured.macro_f1,
    }


def _write_confusion(out: Path, measured: ClassificationReport) -> None:
    counts = [
        {"expected": expected, "predicted": predicted, "count": count}
        for (expected, predicted), count in measured.confusion.items()
    ]
    (out / "confusion.json").write_bytes(canonical_json({"counts": counts}))


def _write_answers(out: Path, columns: Mapping[str, Sequence[str]], scores: Scores) -> None:
    import pyarrow
    import pyarrow.parquet

    confidence = pyarrow.array(scores.confidence, pyarrow.float64())
    table = pyarrow.table({**columns, "confidence": confidence})
    pyarrow.parquet.write_table(table, out / ANSWERS_FILE)
