"""Step 1: freezes the rows of the source query that lie in the window and were known before the cut.

The output is `rows.parquet` (SnapshotRow), `rejects.parquet` (Reject) and `record.json`: query, parameters, window,
columns and counts, so that the rows can be asked for again.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ftpipeline.digest import of_bytes
from ftpipeline.errors import EmptyWindowError, SourceError
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.steps.erased_keys import ErasedKeys
from ftpipeline.steps.intake import Columns, Intake, refuse, take_in
from ftpipeline.steps.ports import RowSource
from ftpipeline.steps.row_files import RowFile
from ftpipeline.steps.rows import Reject, SnapshotRow
from ftpipeline.steps.source_query import fetch_rows
from ftpipeline.steps.tables import RECORD, ROWS, write_record, write_rows
from ftpipeline.steps.windows import Window

REJECTS = "rejects.parquet"
"""File of the rows that were read and refused."""

Source = RowSource | RowFile


def utc_now() -> datetime:
    """Return the time of reading."""
    return datetime.now(UTC)


@step("snapshot", code_version="2", kind=StepKind.SOURCE, distributions=["duckdb", "pyarrow"])
def snapshot(
    inputs: Mapping[str, Path],
    params: Mapping[str, Any],
    out: Path,
    *,
    source: Source,
    erased: ErasedKeys | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Facts:
    """Freeze the window's rows.

    Args:
        inputs: none.
        params: `query` and its `parameters`, or for a file the text that names it; `columns` (see Columns);
            `window_start` and `window_end` (ISO text with offset; the end is the cut); `timezone` of times without one,
            or None to refuse them; `max_reject_rate`, the share of the read rows that may be rejected. The query may
            name `$window_start`, `$window_end` and `$cut`.
        out: the output tree.
        source: the database or the file.
        erased: whose rows are not taken in any more.
        clock: the time of reading; it tells rows of the future, which are in no window, from those of a later week.

    Raises:
        EmptyWindowError: no row is accepted.
        SourceError: the query, a parameter or a column does not fit the source, or too many rows are rejected.
        SourceUnavailableError: the source cannot be read.
    """
    window = Window.of(params, clock())
    intake = read_source(source, params, window, erased)
    require_rate(intake, params["max_reject_rate"])
    if not intake.accepted:
        raise EmptyWindowError(_emptiness(window, intake))
    record = _record(params, window, intake)
    write_rows(out / ROWS, intake.accepted, SnapshotRow)
    write_rows(out / REJECTS, intake.rejects, Reject)
    write_record(out / RECORD, record)
    return _facts(record, intake)


def read_source(source: Source, params: Mapping[str, Any], window: Window, erased: ErasedKeys | None = None) -> Intake:
    """Read a source and decide for every row of it.

    Args:
        source: the database or the file.
        params: as for the step.
        window: which rows are asked for.
        erased: whose rows are not taken in.

    Raises:
        EmptyWindowError: a query returns no row that can lie in the window.
        SourceError: the query, a parameter or a column does not fit the source.
        SourceUnavailableError: the source cannot be read.
    """
    columns = Columns(**params["columns"])
    if isinstance(source, RowFile):
        rows = source.read(columns.named())
        intake = take_in(rows.table, columns, window, rows.places, erased)
        refuse(intake, rows.malformed)
        return intake
    table, outside = fetch_rows(source, params, columns, window)
    intake = take_in(table, columns, window, erased=erased)
    intake.outside += outside
    return intake


def require_rate(intake: Intake, limit: float) -> None:
    """Refuse a source of which too many rows are rejected; what was erased does not speak against it.

    Raises:
        SourceError: the share of rejected rows is above the limit.
    """
    rejected = len(intake.rejects) - intake.reasons.get("erased", 0)
    read = rejected + len(intake.accepted)
    if rejected > limit * read:
        counts = ", ".join(f"{count} {reason}" for reason, count in intake.reasons.items() if reason != "erased")
        raise SourceError(
            f"source: {rejected} of {read} rows are rejected ({counts}), more than max_reject_rate {limit:g} allows; "
            "look at them with 'ftpipeline source check', then correct the source or the limit"
        )


def _emptiness(window: Window, intake: Intake) -> str:
    rejected = ", ".join(f"{count} {reason}" for reason, count in intake.reasons.items()) or "none"
    return (
        f"window {window} holds no usable row (outside: {intake.outside}; rejected: {rejected}); "
        "choose another week, or correct the query and its time zone"
    )


def _record(params: Mapping[str, Any], window: Window, intake: Intake) -> dict[str, Any]:
    accepted, rejected = len(intake.accepted), len(intake.rejects)
    return {
        "query": params["query"],
        "query_sha256": of_bytes(params["query"].encode()),
        "parameters": dict(params["parameters"]),
        "columns": asdict(Columns(**params["columns"])),
        "window": {
            "start": window.start.isoformat(),
            "end": window.end.isoformat(),
            "timezone": params["timezone"],
        },
        "counts": {
            "read": accepted + rejected,
            "accepted": accepted,
            "rejected": rejected,
            "outside_window": intake.outside,
        },
        "rejects": intake.reasons,
    }


def _facts(record: Mapping[str, Any], intake: Intake) -> Facts:
    sources = Counter(row.label_source or "(not stated)" for row in intake.accepted)
    return {
        **record["counts"],
        "rejects": record["rejects"],
        "window": record["window"],
        "query_sha256": record["query_sha256"],
        "labels": dict(Counter(row.label for row in intake.accepted).most_common(100)),
        "label_sources": dict(sources.most_common()),
    }
