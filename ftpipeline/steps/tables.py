"""Rows as Parquet and records as canonical JSON, written so that equal values give equal bytes.

Law: `read_rows(path, kind)` returns what `write_rows(path, rows, kind)` was given.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from ftpipeline.digest import canonical_json

if TYPE_CHECKING:
    import pyarrow

ROWS = "rows.parquet"
"""File of a data step's rows."""

RECORD = "record.json"
"""File that says how the rows came to be."""

Row = TypeVar("Row")


def write_rows(path: Path, rows: Sequence[Row], kind: type[Row]) -> None:
    """Write dataclass rows as one Parquet file, a column a field."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = _schema(kind)
    columns = [pa.array([getattr(row, name) for row in rows], schema.field(name).type) for name in schema.names]
    parquet.write_table(pa.Table.from_arrays(columns, schema=schema), path, compression="zstd")


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """Read what `write_rows` wrote."""
    from pyarrow import parquet

    columns = parquet.read_table(path, schema=_schema(kind)).to_pydict()
    values = [[tuple(v) for v in column] if _holds_lists(column) else column for column in columns.values()]
    return [kind(*row) for row in zip(*values, strict=True)]


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as canonical JSON."""
    path.write_bytes(canonical_json(record))


def read_record(path: Path) -> dict[str, Any]:
    """Read what `write_record` wrote."""
    record: dict[str, Any] = json.loads(path.read_bytes())
    return record


def _holds_lists(column: Sequence[object]) -> bool:
    return bool(column) and isinstance(column[0], list)


def _schema(kind: type) -> "pyarrow.Schema":
    import pyarrow as pa

    types = {
        str: pa.string(),
        str | None: pa.string(),
        int: pa.int64(),
        int | None: pa.int64(),
        float: pa.float64(),
        datetime: pa.timestamp("us", tz="UTC"),
        tuple[str, ...]: pa.list_(pa.string()),
    }
    hints = get_type_hints(kind)
    return pa.schema([(field.name, types[hints[field.name]]) for field in fields(kind)])
