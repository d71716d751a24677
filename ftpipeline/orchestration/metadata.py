"""Facts as metadata values: numbers as numbers, so that the UI plots them over weeks, and counts as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

Metadata = dict[str, dg.MetadataValue[Any]]

_DIGEST_PREFIX = "sha256:"
_SHORT_DIGEST = len(_DIGEST_PREFIX) + 12
_HEADERS: Mapping[str, tuple[str, str]] = {
    "cleaning": ("what", "count"),
    "dropped_label_sources": ("label source", "rows"),
    "expected": ("answer", "rows"),
    "files": ("file", "bytes"),
    "label_sources": ("label source", "rows"),
    "labels": ("label", "rows"),
    "lora_matches": ("module", "matches"),
    "quantization_errors": ("weight", "relative error"),
    "rejected_labels": ("label", "rows"),
    "rejects": ("reason", "rows"),
    "rows": ("part", "rows"),
    "validation": ("metric", "value"),
    "weights": ("file", "digest"),
}
"""What the two columns of a fact that is a mapping are called."""


def fact(name: str, value: Any) -> dg.MetadataValue[Any]:
    """Return one fact in the form that the UI renders best."""
    if value is None or value in ({}, []):
        return dg.MetadataValue.text("none")
    if isinstance(value, bool):
        return dg.MetadataValue.bool(value)
    if isinstance(value, int):
        return dg.MetadataValue.int(value)
    if isinstance(value, float):
        return dg.MetadataValue.float(value)
    if isinstance(value, str):
        return dg.MetadataValue.text(value)
    rows = _rows(value, *_HEADERS.get(name, ("name", "value")))
    return table(rows) if rows else dg.MetadataValue.json(value)


def facts(values: Mapping[str, Any]) -> Metadata:
    """Return facts under names for people."""
    return {_words(name): fact(name, value) for name, value in values.items()}


def table(rows: Sequence[Mapping[str, Any]], first: Sequence[str] = ()) -> dg.MetadataValue[Any]:
    """Return rows as a table, or a word where there is none.

    Every cell is text, so that one column may hold numbers and words; digests are shortened.

    Args:
        rows: flat records.
        first: columns to begin with; the others follow in the order they are met.
    """
    if not rows:
        return dg.MetadataValue.text("none")
    columns = {name: _words(name) for name in [*first, *(name for row in rows for name in row)]}
    records = [{words: _cell(row.get(name)) for name, words in columns.items()} for row in rows]
    return dg.MetadataValue.table(
        records=[dg.TableRecord(record) for record in records],
        schema=dg.TableSchema(columns=[dg.TableColumn(words, "string") for words in columns.values()]),
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _rows(value: Any, key: str, content: str) -> list[dict[str, Any]]:
    """Return a mapping of scalars, or a list of flat records, as table rows; nothing where it is neither."""
    if isinstance(value, Mapping) and all(_is_scalar(item) for item in value.values()):
        return [{key: str(name), content: item} for name, item in value.items()]
    if isinstance(value, Sequence) and all(isinstance(item, Mapping) for item in value):
        flat = [dict(item) for item in value]
        return flat if all(_is_scalar(cell) for row in flat for cell in row.values()) else []
    return []


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value)
    return text[:_SHORT_DIGEST] if text.startswith(_DIGEST_PREFIX) else text
