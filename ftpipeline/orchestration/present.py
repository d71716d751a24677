"""A stage's facts as Dagster metadata: numbers as numbers, counts as tables, curves and confusions as pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from ftpipeline.orchestration import plots
from ftpipeline.records import StepResult

Metadata = dict[str, dg.MetadataValue[Any]]

_PICTURED = frozenset({"loss_curve", "confusion", "evaluations", "manifest"})  # shown in a form of their own


def present(stage: str, result: StepResult) -> Metadata:
    """Return what the UI shows of a finished stage."""
    shown: Metadata = {
        "action": dg.MetadataValue.text(str(result.action)),
        "digest": dg.MetadataValue.text(result.output),
        "step key": dg.MetadataValue.text(result.key),
        "seconds": dg.MetadataValue.float(round(result.seconds, 3)),
    }
    for name, value in result.facts.items():
        if name not in _PICTURED and value is not None:
            shown[name.replace("_", " ")] = metadata_value(value)
    return shown | _PICTURES.get(stage, _nothing)(result.facts)


def metadata_value(value: Any) -> dg.MetadataValue[Any]:
    """Return one fact in the form that the UI renders best."""
    if isinstance(value, bool):
        return dg.MetadataValue.bool(value)
    if isinstance(value, int):
        return dg.MetadataValue.int(value)
    if isinstance(value, float):
        return dg.MetadataValue.float(value)
    if isinstance(value, str):
        return dg.MetadataValue.text(value)
    rows = _rows(value)
    return table(rows) if rows else dg.MetadataValue.json(value)


def _rows(value: Any) -> list[dict[str, Any]]:
    """Return a mapping of scalars, or a list of flat records, as table rows; nothing where it is neither."""
    if isinstance(value, Mapping) and all(_scalar(item) for item in value.values()):
        return [{"name": str(key), "value": item} for key, item in value.items()]
    if isinstance(value, Sequence) and all(isinstance(item, Mapping) for item in value):
        flat = [dict(item) for item in value]
        return flat if all(_scalar(cell) for row in flat for cell in row.values()) else []
    return []


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def table(rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Return rows as a table; every cell is text, so that one column may hold numbers and words."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    records = [{name: _cell(row.get(name)) for name in columns} for row in rows]
    return dg.MetadataValue.table(
        records=[dg.TableRecord(record) for record in records],
        schema=dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in columns]),
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _nothing(facts: Mapping[str, Any]) -> Metadata:
    return {}


def _train(facts: Mapping[str, Any]) -> Metadata:
    points = [(float(point[0]), float(point[1])) for point in facts["loss_curve"]]
    picture = plots.inline(plots.curves({"training loss": points}, "optimizer step"), "loss curve")
    return {"loss curve": dg.MetadataValue.md(picture)}


def _evaluate(facts: Mapping[str, Any]) -> Metadata:
    rows = [
        {"artifact": side.partition("_")[0], "set": side.partition("_")[2], **report["metrics"], **report["counts"]}
        for side, report in facts["evaluations"].items()
    ]
    counts = {(row["expected"], row["predicted"]): row["count"] for row in facts["confusion"]}
    expected = sorted({pair[0] for pair in counts})
    answers = [*expected, *sorted({pair[1] for pair in counts} - set(expected))]
    picture = plots.inline(plots.heatmap(expected, counts, answers), "confusion matrix")
    return {"scores": table(rows), "confusion": dg.MetadataValue.md(picture)}


def _manifest(facts: Mapping[str, Any]) -> Metadata:
    return {"manifest": dg.MetadataValue.json(facts["manifest"])}


def _gate(facts: Mapping[str, Any]) -> Metadata:
    candidate, production = facts["metrics"]["candidate"], facts["metrics"]["production"] or {}
    rows = [
        {"metric": role, "candidate": value, "production": production.get(role), **_difference(facts, role)}
        for role, value in candidate.items()
    ]
    return {"comparison": table(rows)}


def _difference(facts: Mapping[str, Any], role: str) -> dict[str, Any]:
    return {"difference": facts["differences"].get(role)}


_PICTURES = {"train": _train, "evaluate": _evaluate, "manifest": _manifest, "gate": _gate}
