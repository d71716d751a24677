"""Read a metrics file while it is being written: ours, a trainer's JSON lines, its state file, or CSV.

Law: reading a growing file piece by piece gives the points of reading it at once. Only lines that end in a newline are
read, so half of a line is never taken for a whole one; a line that cannot be used is counted with its reason.
"""

import hashlib
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from ftpipeline.errors import SourceError, SourceUnavailableError
from ftpipeline.guard.metric_lines import (
    BOM,
    Collector,
    Cursor,
    MetricsRead,
    csv_cells,
    csv_row,
    document_rows,
    json_row,
)

_HEAD = 256  # first bytes of a file, by which it is told from one that took its place
_STEP_COLUMNS = ("step", "global_step")


def read_metrics(source: Path | bytes, cursor: Cursor | None = None, *, max_bytes: int | None = None) -> MetricsRead:
    """Read what a metrics file holds beyond the cursor.

    Args:
        source: the file, or all of its bytes so far.
        cursor: how far it was read; it is not changed. None for the start.
        max_bytes: about how many bytes to read; always a whole line, where there is one. None for all. A trainer's
            state file is one document and is read whole.

    Raises:
        SourceUnavailableError: the file is missing or cannot be read.
        SourceError: the file is none of the known forms.
    """
    copy = Cursor() if cursor is None else Cursor.from_json(cursor.to_json())
    try:
        with BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
            return _read(file, copy, max_bytes)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SourceUnavailableError(f"metrics file {source!s} cannot be read ({reason}); check the path") from error


def _read(file: BinaryIO, cursor: Cursor, max_bytes: int | None) -> MetricsRead:
    head = file.read(_HEAD)
    size = file.seek(0, 2)
    start = head.removeprefix(BOM).lstrip()
    if start[:1] in (b"{", b"["):
        file.seek(0)
        rows = document_rows(file.read()) if _may_be_document(start, head) else None
        if rows is not None:
            return _read_document(rows, cursor)
    is_json = start[:1] == b"{" or b"\n{" in head  # a rotated file may begin in the middle of a line
    return _read_lines(file, cursor, head, size, max_bytes, is_json=is_json)


def _may_be_document(start: bytes, head: bytes) -> bool:
    """Tell whether a file that begins like this may be one JSON document: an open line, or a list of its own."""
    first_line, newline, _ = start.partition(b"\n")
    opens = first_line.strip() in (b"{", b"[") or start.startswith(b"[")
    return opens or b'"log_history"' in head or not newline


def _read_document(rows: list[object], cursor: Cursor) -> MetricsRead:
    """Read the entries of a state file that are new; it is written anew each time, so entries are what is counted."""
    rotated = len(rows) < cursor.lines
    if rotated:
        cursor = Cursor(rows=cursor.rows)
    collector = Collector(cursor)
    for row in rows[cursor.lines :]:
        cursor.lines += 1
        collector.take(row, str(row))
    return collector.result(waiting=0, rotated=rotated)


def _read_lines(
    file: BinaryIO, cursor: Cursor, head: bytes, size: int, max_bytes: int | None, *, is_json: bool
) -> MetricsRead:
    rotated = cursor.head_size > 0 and (size < cursor.offset or _digest(head[: cursor.head_size]) != cursor.head)
    if rotated:
        cursor = Cursor(rows=cursor.rows)
    cursor.head, cursor.head_size = _digest(head), len(head)
    file.seek(cursor.offset)
    collector = Collector(cursor)
    for line in _whole_lines(file, max_bytes):
        cursor.offset += len(line)
        cursor.lines += 1
        if is_json:
            collector.line(line, json_row)
        elif cursor.columns is None:
            cursor.columns = _columns(line)
        else:
            collector.line(line, lambda text: csv_row(text, cursor.columns or []))
    return collector.result(waiting=size - cursor.offset, rotated=rotated)


def _whole_lines(file: BinaryIO, max_bytes: int | None) -> list[bytes]:
    """Return the lines that end in a newline."""
    lines, read = [], 0
    while max_bytes is None or read < max_bytes:
        line = file.readline()
        if not line.endswith(b"\n"):
            break
        lines.append(line)
        read += len(line)
    return lines


def _columns(line: bytes) -> list[str]:
    try:
        columns = [name.strip() for name in csv_cells(line.removeprefix(BOM).decode("utf-8"))]
    except ValueError as error:
        raise SourceError(
            f"metrics file begins with a line that cannot be read ({error}); give JSON lines or CSV"
        ) from error
    if not set(columns) & set(_STEP_COLUMNS):
        raise SourceError(
            f"metrics file has no column 'step' among {', '.join(columns)[:80]!r}; "
            "give JSON lines, a trainer_state.json, or CSV with a header"
        )
    return columns


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()
