"""Asks a database for the rows of the source query that can lie in a window."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ftpipeline.errors import EmptyWindowError, SourceError
from ftpipeline.steps.intake import Columns
from ftpipeline.steps.ports import RowSource
from ftpipeline.steps.windows import Window

if TYPE_CHECKING:
    import pyarrow

_ROWS, _TOTAL, _LATEST = "ftpipeline_rows", "ftpipeline_total", "ftpipeline_latest"  # no user's table has such names
_RESERVED = ("window_start", "window_end", "cut", _LATEST)


def fetch_rows(
    source: RowSource, params: Mapping[str, Any], columns: Columns, window: Window
) -> tuple["pyarrow.Table", int]:
    """Return the rows, at least one, and how many more the query returned outside the window.

    Raises:
        EmptyWindowError: the query returns no row that can lie in the window.
        SourceError: the query, a parameter or a column does not fit the source.
    """
    query = params["query"].strip().rstrip(";")
    bound = {**_declared(query, params["parameters"]), "window_start": window.start, _LATEST: window.latest}
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

    Times without a zone, and text, are judged after the fetch: reading them is ours, not the database's. Rows from the
    future are asked for, because they are rejected and counted.
    """
    conditions = []
    if event := _absolute(schema, columns.event_time):
        name = _identifier(event)
        # Behind the cut only the ingestion time tells a row of the future from one of a later week.
        until = f" AND {_before_the_end(name)}" if columns.ingestion_time is None else ""
        conditions.append(f"({name} IS NULL OR ({name} >= $window_start{until}))")
    if ingestion := _absolute(schema, columns.ingestion_time):
        name = _identifier(ingestion)
        conditions.append(f"({name} IS NULL OR {_before_the_end(name)})")
    selected = ", ".join(_identifier(name) for name in columns.named())
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    return (
        f"WITH {_ROWS} AS (\n{query}\n)\n"
        f"SELECT {selected}, (SELECT count(*) FROM {_ROWS}) AS {_TOTAL} FROM {_ROWS}{where}"
    )


def _before_the_end(name: str) -> str:
    return f"({name} < $window_end OR {name} >= ${_LATEST})"


def _absolute(schema: "pyarrow.Schema", name: str | None) -> str | None:
    """Return the column's name if its times carry a zone."""
    import pyarrow as pa

    if name is None:
        return None
    kind = schema.field(name).type
    return name if pa.types.is_timestamp(kind) and kind.tz is not None else None


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
