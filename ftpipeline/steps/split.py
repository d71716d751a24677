"""Step 3: assigns whole groups to train and validation, then removes from both what gives an eval set away.

The output is `train.parquet` and `validation.parquet` (CuratedRow), `leaks.parquet` (Leak), `leakage.json` (the
verdict) and `split.json` (what was reached). A row that is found in an eval set is dropped wherever it was assigned:
validation must not calibrate on the exam either. Train is checked against the validation that is left.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ftpipeline.errors import EmptyResultError, LeakageError, PipelineFileError
from ftpipeline.records import Facts, step
from ftpipeline.steps.assignment import Assignment, assign
from ftpipeline.steps.curate import VARIANTS
from ftpipeline.steps.leakage import METHOD
from ftpipeline.steps.leakage.jit import KERNELS
from ftpipeline.steps.leaks import TRAIN, VALIDATION, LeakFinder, summary
from ftpipeline.steps.ports import Progress, silent
from ftpipeline.steps.rows import CuratedRow, EvalRow, Leak, Variant
from ftpipeline.steps.tables import ROWS, read_rows, write_record, write_rows

LEAKAGE_RECORD, SPLIT_RECORD, LEAKS = "leakage.json", "split.json", "leaks.parquet"
EVAL_PREFIX = "eval_"
"""Inputs named `eval_<role>` are eval sets."""

_POLICIES = ("drop", "fail")
_FINDING_POLICIES = ("report", "fail")


@step("split", code_version="3", distributions=["pyarrow"], caches=[KERNELS])
def split(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path, *, progress: Progress = silent) -> Facts:
    """Split curated rows by group and enforce that no eval set leaks into them.

    Args:
        inputs: `curated`, and `eval_<role>` for every eval set.
        params: `validation_fraction` in (0, 1), `seed`, `leakage` with `threshold` and `policy` (drop or fail), and
            `missing_classes` and `forced_sides` (report or fail; report where they are not given).
        out: the output tree.
        progress: told about rows checked.

    Raises:
        EmptyResultError: train or validation would be empty, or lack a class or have a forced group under `fail`.
        LeakageError: there are leaks and the policy is `fail`.
        PipelineFileError: a parameter is out of its range.
    """
    policy, threshold = params["leakage"]["policy"], params["leakage"]["threshold"]
    if policy not in _POLICIES:
        raise PipelineFileError(f"leakage.policy is {policy!r}; use drop or fail")
    rows = read_rows(inputs["curated"] / ROWS, CuratedRow)
    assignment = assign(rows, params["validation_fraction"], params["seed"])
    _require_free(assignment.forced, params.get("forced_sides", "report"))
    sides = assignment.sides
    finder = LeakFinder(_wordings(inputs["curated"]), threshold, progress)
    checks = _checked(finder, _eval_sets(inputs), rows, sides)
    leaked = {leak.train_id for leaks, _ in checks.values() for leak in leaks}
    report = {name: summary(leaks, checked) for name, (leaks, checked) in checks.items()}
    if leaked and policy == "fail":
        raise LeakageError(_accusation(report, threshold))
    left = [row for row in rows if row.id not in leaked]
    kept = {side: [row for row in left if sides[row.id] == side] for side in (TRAIN, VALIDATION)}
    _require_rows(kept, leaked)
    record = _record(kept, assignment, params)
    _require_classes(record["missing_labels"], params.get("missing_classes", "report"))
    for side, side_rows in kept.items():
        write_rows(out / f"{side}.parquet", side_rows, CuratedRow)
    write_rows(out / LEAKS, [leak for leaks, _ in checks.values() for leak in leaks], Leak)
    verdict = {"verdict": "dropped" if leaked else "clean", "threshold": threshold, "method": METHOD, "sets": report}
    write_record(out / LEAKAGE_RECORD, verdict)
    write_record(out / SPLIT_RECORD, record)
    return _facts(record, verdict, Counter(sides[row] for row in leaked))


def _wordings(curated: Path) -> dict[str, list[str]]:
    wordings: dict[str, list[str]] = defaultdict(list)
    for variant in read_rows(curated / VARIANTS, Variant):
        wordings[variant.id].append(variant.text)
    return wordings


def _eval_sets(inputs: Mapping[str, Path]) -> dict[str, list[EvalRow]]:
    return {
        name.removeprefix(EVAL_PREFIX): read_rows(folder / ROWS, EvalRow)
        for name, folder in sorted(inputs.items())
        if name.startswith(EVAL_PREFIX)
    }


def _checked(
    finder: LeakFinder, eval_sets: Mapping[str, list[EvalRow]], rows: Sequence[CuratedRow], sides: Mapping[str, str]
) -> dict[str, tuple[list[Leak], int]]:
    """Return, for every eval set and for validation, the leaks and how many eval rows were looked for."""
    checks = {role: (finder.find(role, evals, rows, sides), len(evals)) for role, evals in eval_sets.items()}
    gone = {leak.train_id for leaks, _ in checks.values() for leak in leaks}
    validation = [row for row in rows if sides[row.id] == VALIDATION and row.id not in gone]
    held_out = [EvalRow(row.id, row.text, row.label) for row in validation]
    train = [row for row in rows if sides[row.id] == TRAIN]
    checks[VALIDATION] = finder.find(VALIDATION, held_out, train, sides), len(held_out)
    return checks


def _accusation(report: Mapping[str, Mapping[str, int]], threshold: float) -> str:
    counts = ", ".join(f"{name} {found['leaked_tickets']}" for name, found in report.items() if found["leaked_tickets"])
    return (
        f"source rows give eval rows away at threshold {threshold} (by eval set: {counts}); "
        "remove them at the source, or set split.leakage.policy to drop"
    )


def _require_rows(kept: Mapping[str, Sequence[CuratedRow]], leaked: set[str]) -> None:
    for side, rows in kept.items():
        if not rows:
            raise EmptyResultError(
                f"{side} is empty after the split ({len(leaked)} leaked rows dropped); "
                "widen the window, or check that the group keys do not tie all rows into one group"
            )


def _require_free(forced: int, policy: str) -> None:
    _require_policy("forced_sides", policy)
    if forced and policy == "fail":
        raise EmptyResultError(
            f"{forced} groups cannot be on the side of their name without an empty side or most rows held out; "
            "widen the window, choose another seed, or set split.forced_sides to report"
        )


def _require_classes(missing: Mapping[str, Sequence[str]], policy: str) -> None:
    _require_policy("missing_classes", policy)
    lacking = "; ".join(f"{side} has no row of {', '.join(labels)}" for side, labels in missing.items() if labels)
    if lacking and policy == "fail":
        raise EmptyResultError(
            f"{lacking}; widen the window, hold out another share, or set split.missing_classes to report"
        )


def _require_policy(name: str, policy: str) -> None:
    if policy not in _FINDING_POLICIES:
        raise PipelineFileError(f"split.{name} is {policy!r}; use report or fail")


def _record(
    kept: Mapping[str, Sequence[CuratedRow]], assignment: Assignment, params: Mapping[str, Any]
) -> dict[str, Any]:
    labels = {side: Counter(row.label for row in rows) for side, rows in kept.items()}
    everything = {label for counts in labels.values() for label in counts}
    total = sum(map(len, kept.values()))
    return {
        "rows": {side: len(rows) for side, rows in kept.items()},
        "validation_fraction": {"wanted": params["validation_fraction"], "reached": len(kept[VALIDATION]) / total},
        "seed": params["seed"],
        "groups": {
            "count": len(assignment.groups),
            "largest": max(map(len, assignment.groups)),
            "joined_across": assignment.joined_across,
            "forced": assignment.forced,
        },
        "labels": {side: dict(counts.most_common()) for side, counts in labels.items()},
        "missing_labels": {side: sorted(everything - counts.keys()) for side, counts in labels.items()},
    }


def _facts(record: Mapping[str, Any], verdict: Mapping[str, Any], leaked: Mapping[str, int]) -> Facts:
    """Return the records with their tables flat: one line an eval set, one line a label."""
    names = sorted({label for counts in record["labels"].values() for label in counts})
    return {
        **record,
        "labels": [
            {"label": label, **{side: record["labels"][side].get(label, 0) for side in (TRAIN, VALIDATION)}}
            for label in names
        ],
        "leakage": dict(verdict),
        "leaks": [{"eval_set": name, **found} for name, found in verdict["sets"].items()],
        "leaked": leaked.get(TRAIN, 0),
        "leaked_from_validation": leaked.get(VALIDATION, 0),
    }
