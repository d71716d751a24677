"""Decides for every row of the source: accepted, rejected with a reason, or outside the window.

Law: accepted + rejected = read, and the order in which the source returns its rows changes nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ftpipeline.errors import SourceError
from ftpipeline.steps.rows import Reject, SnapshotRow
from ftpipeline.steps.windows import Window, utc_times

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Columns:
    """Which column of the source query plays which part.

    Attributes:
        ingestion_time: when the source got to know the row; None lets the event time serve.
        label_source: who gave the label; None where the source does not say.
        groups: keys that tie rows together (customer, thread).
    """

    id: str
    text: str
    label: str
    event_time: str
    ingestion_time: str | None
    label_source: str | None
    groups: Sequence[str]

    def named(self) -> list[str]:
        """Return the columns in use, each once."""
        parts = [self.id, self.text, self.label, self.event_time, self.ingestion_time, self.label_source, *self.groups]
        return list(dict.fromkeys(part for part in parts if part is not None))


@dataclass
class Intake:
    """What became of the rows.

    Attributes:
        accepted: sorted by id.
        rejects: sorted by id, reason and length.
        outside: rows that were returned but lie outside the window; they do not count as read.
    """

    accepted: list[SnapshotRow] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    outside: int = 0


def take_in(table: "pyarrow.Table", columns: Columns, window: Window) -> Intake:
    """Sort the source's rows into accepted, rejected and outside.

    Raises:
        SourceError: a column has a type that this part cannot have.
    """
    intake = Intake()
    candidates: list[SnapshotRow] = []
    for row, event, ingested in _rows(table, columns, window):
        if event is None or ingested is None:
            intake.rejects.append(_reject(row, "bad_time" if event is None else "bad_ingestion_time"))
        elif not window.holds(event, ingested):
            intake.outside += 1
        elif reason := _problem(row):
            intake.rejects.append(_reject(row, reason))
        else:
            candidates.append(SnapshotRow(**row, event_time=event))
    _settle_ids(candidates, intake)
    assert len(intake.accepted) + len(intake.rejects) + intake.outside == table.num_rows, "a row was lost or doubled"
    intake.rejects.sort(key=lambda reject: (reject.id, reject.reason, reject.text_length))
    return intake


_Raw = dict[str, Any]  # a SnapshotRow's fields but the time, values not yet checked


def _rows(
    table: "pyarrow.Table", columns: Columns, window: Window
) -> Iterator[tuple[_Raw, datetime | None, datetime | None]]:
    parts = [_texts(table, name) for name in (columns.id, columns.text, columns.label)]
    sources = _texts(table, columns.label_source) if columns.label_source else [None] * table.num_rows
    events = utc_times(columns.event_time, table[columns.event_time], window.zone)
    ingested = events
    if columns.ingestion_time:
        ingested = utc_times(columns.ingestion_time, table[columns.ingestion_time], window.zone)
    groups = _group_keys(table, columns.groups)
    for ident, text, label, source, keys, *times in zip(*parts, sources, groups, events, ingested, strict=True):
        yield {"id": ident, "text": text, "label": label, "label_source": source, "groups": keys}, times[0], times[1]


def _texts(table: "pyarrow.Table", name: str) -> list[str | None]:
    """Return a column as text; numbers that have more than one spelling are refused, not guessed."""
    import pyarrow as pa

    kind = table.schema.field(name).type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(check(value) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)):
        raise SourceError(f"source column {name!r} is {kind}; cast it to VARCHAR in source.query")
    values: list[str | None] = table[name].cast(pa.string()).to_pylist()
    return values


def _group_keys(table: "pyarrow.Table", names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return `<column>=<value>` keys per row: equal values of two columns stay apart, a blank value is no key."""
    keys: list[list[str]] = [[] for _ in range(table.num_rows)]
    for name in names:
        for row, value in zip(keys, _texts(table, name), strict=True):
            if not _blank(value):
                row.append(f"{name}={value}")
    return [tuple(row) for row in keys]


def _blank(value: str | None) -> bool:
    return value is None or not value.strip()


def _problem(row: _Raw) -> str | None:
    values = (row["id"], row["text"], row["label"], row["label_source"], *row["groups"])
    if any(value is not None and "\0" in value for value in values):
        return "nul_byte"
    for part, reason in (("id", "missing_id"), ("label", "missing_label"), ("text", "empty_text")):
        if _blank(row[part]):
            return reason
    return None


def _settle_ids(candidates: list[SnapshotRow], intake: Intake) -> None:
    """Accept one of equal rows; where one id names different rows nobody knows the right one, so none is accepted."""
    by_id: dict[str, list[SnapshotRow]] = defaultdict(list)
    for row in candidates:
        by_id[row.id].append(row)
    for _, same in sorted(by_id.items()):
        if all(row == same[0] for row in same):
            intake.accepted.append(same[0])
            intake.rejects += [Reject(row.id, "duplicate_row", len(row.text)) for row in same[1:]]
        else:
            intake.rejects += [Reject(row.id, "duplicate_id", len(row.text)) for row in same]


def _reject(row: _Raw, reason: str) -> Reject:
    return Reject(row["id"] or "", reason, len(row["text"] or ""))
