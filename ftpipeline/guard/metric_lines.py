"""Lines of a metrics file, as rows; what was taken of them, and how far a file was read."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ftpipeline.errors import InputError, SourceError
from ftpipeline.guard.metric_rows import RowHistory
from ftpipeline.guard.points import Event, Point

BOM = b"\xef\xbb\xbf"
_EXCERPT = 80  # characters of a bad line that are shown


@dataclass
class Cursor:
    """How far a file was read; JSON through `to_json` and `from_json`.

    Attributes:
        offset: bytes that were read.
        lines: lines that were read; of a state file, entries.
        head: digest of the first bytes, `head_size` of them.
        columns: columns of a CSV file; None for JSON.
        rows: what the rows so far say about the next.
    """

    offset: int = 0
    lines: int = 0
    head: str = ""
    head_size: int = 0
    columns: list[str] | None = None
    rows: RowHistory = field(default_factory=RowHistory)

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Cursor":
        """Return the cursor that `to_json` wrote.

        Raises:
            InputError: the document is no cursor.
        """
        try:
            return _CURSOR.validate_python(dict(document))
        except (TypeError, ValidationError) as error:
            raise InputError(f"metrics cursor cannot be read ({error}); read the file from its start") from error


_CURSOR: TypeAdapter[Cursor] = TypeAdapter(Cursor)


@dataclass(frozen=True)
class BadLine:
    """A line that was not used; of a state file, an entry."""

    line: int
    reason: str
    excerpt: str


@dataclass(frozen=True)
class MetricsRead:
    """What was read.

    Attributes:
        points: points in the order of the file.
        events: declared changes that stand in the file.
        bad_lines: lines that could not be used.
        ignored: lines without a step's metric, such as a summary.
        waiting: bytes beyond the last line that was read; they are read when their line is complete.
        rotated: whether another file stands in the place of the one the cursor knew; it was read from its start.
        cursor: where to go on.
    """

    points: tuple[Point, ...]
    events: tuple[Event, ...]
    bad_lines: tuple[BadLine, ...]
    ignored: int
    waiting: int
    rotated: bool
    cursor: Cursor


class Collector:
    """Sorts rows into points, declared changes, bad lines and what is none of them."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._points: list[Point] = []
        self._events: list[Event] = []
        self._bad: list[BadLine] = []
        self._ignored = 0

    def line(self, line: bytes, parse: Callable[[str], object]) -> None:
        """Take one line; blank ones say nothing."""
        text = line.removeprefix(BOM).decode("utf-8", errors="replace").strip()
        if not text:
            return
        try:
            line.decode("utf-8")
            row = parse(text)
        except (ValueError, RecursionError) as error:
            self._refuse(f"cannot be parsed: {type(error).__name__}", text)
        except SourceError as error:
            self._refuse(str(error), text)
        else:
            self.take(row, text)

    def take(self, row: object, text: str) -> None:
        """Take one row; `text` is what is shown of it if it is bad."""
        try:
            if not isinstance(row, dict):
                raise SourceError("not an object")
            found = self._cursor.rows.read(row)
        except SourceError as error:
            self._refuse(str(error), text)
            return
        if isinstance(found, Point):
            self._points.append(found)
        elif isinstance(found, Event):
            self._events.append(found)
        else:
            self._ignored += 1

    def result(self, *, waiting: int, rotated: bool) -> MetricsRead:
        """Return all that was taken."""
        return MetricsRead(
            points=tuple(self._points),
            events=tuple(self._events),
            bad_lines=tuple(self._bad),
            ignored=self._ignored,
            waiting=waiting,
            rotated=rotated,
            cursor=self._cursor,
        )

    def _refuse(self, reason: str, text: str) -> None:
        self._bad.append(BadLine(self._cursor.lines, reason, text[:_EXCERPT]))


def json_row(text: str) -> object:
    """Return a JSON value; NaN and infinities are read, although JSON has none."""
    return json.loads(text)


def csv_cells(text: str) -> list[str]:
    """Return the cells of one line of CSV.

    Raises:
        ValueError: the line is no CSV, or holds a NUL byte.
    """
    if "\0" in text:
        raise ValueError("a NUL byte")
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise ValueError(str(error)) from error


def csv_row(text: str, columns: Sequence[str]) -> dict[str, str]:
    """Return one line of CSV as a row.

    Raises:
        SourceError: it has more or fewer cells than the header.
    """
    cells = csv_cells(text)
    if len(cells) != len(columns):
        raise SourceError(f"{len(cells)} cells under {len(columns)} columns")
    return dict(zip(columns, cells, strict=True))


def document_rows(data: bytes) -> list[object] | None:
    """Return the entries of a trainer's state file or of a JSON list; None if the bytes are neither, or not yet."""
    try:
        document = json.loads(data.removeprefix(BOM))
    except (ValueError, RecursionError):
        return None
    rows = document.get("log_history") if isinstance(document, dict) else document
    return rows if isinstance(rows, list) else None
