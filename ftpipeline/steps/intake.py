"""Decides for every row of the source: accepted, rejected with a reason, or outside the window.

Law: accepted + rejected = read, and the order in which a database returns its rows changes nothing. The places of
rejects in a file are the one thing that the order of a file's rows can change.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ftpipeline.errors import SourceError
from ftpipeline.steps.erased_keys import ErasedKeys
from ftpipeline.steps.row_formats import Malformed, Place
from ftpipeline.steps.rows import Reject, SnapshotRow
from ftpipeline.steps.text import excerpt
from ftpipeline.steps.windows import Window, utc_times

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Columns:
    """Which column of the source plays which part.

    Attributes:
        id: None, as for label and event time, only while a file is looked at whose schema is not declared yet.
        ingestion_time: when the source got to know the row; None lets the event time serve.
        label_source: who gave the label; None where the source does not say.
        groups: keys that tie rows together (customer, thread).
        missing_keys: values of group columns that stand for no key, such as `unknown`.
    """

    id: str | None
    text: str
    label: str | None
    event_time: str | None
    ingestion_time: str | None
    label_source: str | None
    groups: Sequence[str]
    missing_keys: Sequence[str] = ()

    def named(self) -> list[str]:
        """Return the columns in use, each once."""
        parts = [self.id, self.text, self.label, self.event_time, self.ingestion_time, self.label_source, *self.groups]
        return list(dict.fromkeys(part for part in parts if part is not None))


def _by_place_or_content(reject: Reject) -> tuple[object, ...]:
    return reject.row or 0, reject.id, reject.reason, reject.text_length, reject.excerpt, reject.groups


@dataclass
class Intake:
    """What became of the rows.

    Attributes:
        accepted: sorted by id.
        rejects: in the order of the file, or sorted by content.
        outside: rows that were returned but lie outside the window; they do not count as read.
    """

    accepted: list[SnapshotRow] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    outside: int = 0

    @property
    def reasons(self) -> dict[str, int]:
        """Return how many rows each rule refused."""
        return dict(sorted(Counter(reject.reason for reject in self.rejects).items()))

    def sort_rejects(self) -> None:
        """Bring the rejects into an order of their own: that of the file, or else by content."""
        self.rejects.sort(key=_by_place_or_content)


def take_in(
    table: "pyarrow.Table",
    columns: Columns,
    window: Window,
    places: Sequence[Place] | None = None,
    erased: ErasedKeys | None = None,
) -> Intake:
    """Sort the source's rows into accepted, rejected and outside.

    Args:
        table: the rows.
        columns: which column plays which part.
        window: which rows are asked for.
        places: of the rows, where they have an order.
        erased: keys whose rows are not taken in any more.

    Raises:
        SourceError: a column has a type that this part cannot have.
    """
    intake = Intake()
    candidates: list[_Placed] = []
    placed = places if places is not None else [Place(None, None, None)] * table.num_rows
    for place, (row, event, ingested) in zip(placed, _rows(table, columns, window), strict=True):
        if erased is not None and erased.covers(row["id"], row["groups"]):
            intake.rejects.append(Reject("", "erased", 0, None, None, None, "", ()))
        elif event is None or ingested is None:
            intake.rejects.append(_reject(row, "bad_time" if event is None else "bad_ingestion_time", place))
        elif window.is_overtaken(event, ingested):
            intake.rejects.append(_reject(row, "from_the_future", place))
        elif not window.holds(event, ingested):
            intake.outside += 1
        elif reason := _problem(row):
            intake.rejects.append(_reject(row, reason, place))
        else:
            candidates.append((SnapshotRow(**row, event_time=event), place))
    _settle_ids(candidates, intake)
    assert len(intake.accepted) + len(intake.rejects) + intake.outside == table.num_rows, "a row was lost or doubled"
    intake.sort_rejects()
    return intake


_Raw = dict[str, Any]  # a SnapshotRow's fields but the time, values not yet checked
_Placed = tuple[SnapshotRow, Place]


def refuse(intake: Intake, malformed: Iterable[Malformed]) -> None:
    """Add the records of a file that could not be read."""
    for record in malformed:
        unread: _Raw = {"id": "", "text": record.raw, "groups": ()}
        intake.rejects.append(_reject(unread, record.reason, record.place))
    intake.sort_rejects()


def _rows(
    table: "pyarrow.Table", columns: Columns, window: Window
) -> Iterator[tuple[_Raw, datetime | None, datetime | None]]:
    texts, sources = _texts(table, columns.text), _optional(table, columns.label_source)
    # Without a declared id or label there is nothing to judge: the place serves as the one, a constant as the other.
    idents = _texts(table, columns.id) if columns.id else [f"row {row}" for row in range(1, table.num_rows + 1)]
    labels = _texts(table, columns.label) if columns.label else ["(no label)"] * table.num_rows
    events = _times(table, columns.event_time, window)
    ingested = _times(table, columns.ingestion_time, window) if columns.ingestion_time else events
    groups = _group_keys(table, columns)
    for ident, text, label, source, keys, *times in zip(
        idents, texts, labels, sources, groups, events, ingested, strict=True
    ):
        given = None if _blank(source) else source  # text formats cannot tell an empty value from a missing one
        yield {"id": ident, "text": text, "label": label, "label_source": given, "groups": keys}, times[0], times[1]


def _times(table: "pyarrow.Table", name: str | None, window: Window) -> Sequence[datetime | None]:
    return utc_times(name, table[name], window.zone) if name else [window.start] * table.num_rows


def _optional(table: "pyarrow.Table", name: str | None) -> Sequence[str | None]:
    return _texts(table, name) if name else [None] * table.num_rows


def _texts(table: "pyarrow.Table", name: str) -> list[str | None]:
    """Return a column as text; numbers that have more than one spelling are refused, not guessed."""
    import pyarrow as pa

    kind = table.schema.field(name).type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(check(value) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)):
        raise SourceError(f"source column {name!r} is {kind}; make it text in the query or the file")
    values: list[str | None] = table[name].cast(pa.string()).to_pylist()
    return values


def _group_keys(table: "pyarrow.Table", columns: Columns) -> list[tuple[str, ...]]:
    """Return `<column>=<value>` keys per row: equal values of two columns stay apart, a blank value is no key."""
    keys: list[list[str]] = [[] for _ in range(table.num_rows)]
    for name in columns.groups:
        for row, value in zip(keys, _texts(table, name), strict=True):
            if not _blank(value) and value not in columns.missing_keys:
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


def _settle_ids(candidates: Sequence[_Placed], intake: Intake) -> None:
    """Accept one of equal rows; where one id names different rows nobody knows the right one, so none is accepted."""
    by_id: dict[str, list[_Placed]] = defaultdict(list)
    for row, place in candidates:
        by_id[row.id].append((row, place))
    for _, same in sorted(by_id.items()):
        equal = all(row == same[0][0] for row, _ in same)
        if equal:
            intake.accepted.append(same[0][0])
        for row, place in same[equal:]:
            intake.rejects.append(_reject(_raw(row), "duplicate_row" if equal else "duplicate_id", place))


def _raw(row: SnapshotRow) -> _Raw:
    return {"id": row.id, "text": row.text, "groups": row.groups}


def _reject(row: _Raw, reason: str, place: Place) -> Reject:
    text = row["text"] or ""
    where = place.line, place.row, place.byte_offset
    return Reject(row["id"] or "", reason, len(text), *where, excerpt(text), tuple(row["groups"]))
