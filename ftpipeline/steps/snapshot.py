"""Step 1: freezes the rows of the source query that lie in the window and were known before the cut.

The output is `rows.parquet` (SnapshotRow), `rejects.parquet` (Reject) and `record.json`: query, parameters, window,
columns and counts, so that the rows can be asked for again.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftpipeline.digest import of_bytes
from ftpipeline.errors import EmptyWindowError, SourceError
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.steps.intake import Columns, Intake, take_in
from ftpipeline.steps.ports import RowSource
from ftpipeline.steps.rows import Reject, SnapshotRow
from ftpipeline.steps.tables import RECORD, ROWS, write_record, write_rows
from ftpipeline.steps.windows import Window

if TYPE_CHECKING:
    import pyarrow

REJECTS = "rejects.parquet"
"""File of the rows that were read and refused."""

_ROWS, _TOTAL = "ftpipeline_rows", "ftpipeline_total"  # names that no user's table or column has
_RESERVED = ("window_start", "window_end", "cut")


@step("snapshot", code_version="1", kind=StepKind.SOURCE, distributions=["duckdb", "pyarrow"])
def snapshot(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path, *, source: RowSource) -> Facts:
    """Freeze the window's rows.

    Args:
        inputs: none.
        params: `query` and its `parameters`; `columns` (see Columns); `window_start` and `window_end` (ISO text with
            offset; the end is the cut); `timezone` of times without one, or None to refuse them. The query may name
            `$window_start`, `$window_end` and `$cut`.
        out: the output tree.
        source: the database.

    Raises:
        EmptyWindowError: no row is accepted.
        SourceError: the query, a parameter or a column does not fit the source.
        SourceUnavailableError: the source cannot be read.
    """
    window = Window.of(params)
    columns = Columns(**params["columns"])
    table, outside = _fetch(source, params, columns, window)
    intake = take_in(table, columns, window)
    intake.outside += outside
    if not intake.accepted:
        raise EmptyWindowError(_emptiness(window, intake))
    record = _record(params, window, intake)
    write_rows(out / ROWS, intake.accepted, SnapshotRow)
    write_rows(out / REJECTS, intake.rejects, Reject)
    write_record(out / RECORD, record)
    return _facts(record, intake)


def _fetch(
    source: RowSource, params: Mapping[str, Any], columns: Columns, window: Window
) -> tuple["pyarrow.Table", int]:
    """Return the rows, at least one, and how many more the query returned outside the window."""
    query = params["query"].strip().rstrip(";")
    bound = {**_declared(query, params["parameters"]), "window_start": window.start}
    bound |= {"window_end": window.end, "cut": window.end}
    schema = source.fetch(f"SELECT * FROM (\n{query}\n) AS {_ROWS} LIMIT 0", bound).schema
    for name in columns.named():
        if name not in schema.names:
            raise SourceError(f"source query returns no column {name!r}; it returns {', '.join(schema.names)}")
    table = source.fetch(_windowed(query, columns, schema), bound)
    if not table.num_rows:
        raise EmptyWindowError(
            f"window {window} holds no row of the source query; choose another week or correct the query"
        )
    return table, table[_TOTAL][0].as_py() - table.num_rows


def _declared(query: str, parameters: Mapping[str, object]) -> Mapping[str, object]:
    for name in parameters:
        if name in _RESERVED:
            raise SourceError(f"source parameter {name!r} is bound by the window; give yours another name")
        if not re.search(rf"\${re.escape(name)}\b", query):
            raise SourceError(f"source query does not name ${name}; use the parameter or remove it")
    return parameters


def _windowed(query: str, columns: Columns, schema: "pyarrow.Schema") -> str:
    """Wrap the query so that the source itself leaves out rows whose absolute times lie outside the window.

    Times without a zone, and text, are judged after the fetch: reading them is ours, not the database's.
    """
    conditions = []
    if _absolute(schema, columns.event_time):
        name = _identifier(columns.event_time)
        conditions.append(f"({name} IS NULL OR ({name} >= $window_start AND {name} < $window_end))")
    if columns.ingestion_time and _absolute(schema, columns.ingestion_time):
        name = _identifier(columns.ingestion_time)
        conditions.append(f"({name} IS NULL OR {name} < $window_end)")
    selected = ", ".join(_identifier(name) for name in columns.named())
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    return (
        f"WITH {_ROWS} AS (\n{query}\n)\n"
        f"SELECT {selected}, (SELECT count(*) FROM {_ROWS}) AS {_TOTAL} FROM {_ROWS}{where}"
    )


def _absolute(schema: "pyarrow.Schema", name: str) -> bool:
    import pyarrow as pa

    kind = schema.field(name).type
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _emptiness(window: Window, intake: Intake) -> str:
    reasons = Counter(reject.reason for reject in intake.rejects)
    rejected = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "none"
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
        "rejects": dict(Counter(reject.reason for reject in intake.rejects)),
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
