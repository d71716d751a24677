"""Reads the file of an eval set strictly: what cannot be read as declared is an error that names the line.

Nothing is guessed: UTF-8 with or without a byte order mark, comma and double quote, no spelling of a missing value, ids
as text. A record is what stands in the declared columns; other columns are ignored.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ftpipeline.errors import EvalSetError
from ftpipeline.steps import strict_json


@dataclass(frozen=True)
class Record:
    """One record.

    Attributes:
        line: line of the file that it starts on, from 1; for Parquet the row, from 1.
        values: column name to value, not yet checked.
    """

    line: int
    values: Mapping[str, Any]


def read_records(data: bytes, form: str) -> Iterator[Record]:
    """Yield the records of a file.

    Args:
        data: content of the file.
        form: name of the format, see FORMATS.

    Raises:
        EvalSetError: the format is unknown or the file is not in it.
    """
    if form not in FORMATS:
        raise EvalSetError(f"format {form!r} is unknown; use one of {', '.join(FORMATS)}")
    return FORMATS[form](data)


def _csv_records(data: bytes) -> Iterator[Record]:
    reader = csv.reader(io.StringIO(_decoded(data), newline=""), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for fields in reader:
            if header is None:
                header = _header(fields)
            elif fields:  # a line with nothing on it is no record
                if len(fields) != len(header):
                    raise EvalSetError(
                        f"line {line} has {len(fields)} fields, the header {len(header)}; quote the text"
                    )
                yield Record(line, dict(zip(header, fields, strict=True)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise EvalSetError(f"line {line} is not CSV ({error}); correct the quotes") from error


def _header(fields: list[str]) -> list[str]:
    if len(set(fields)) != len(fields):
        raise EvalSetError("line 1 names a column twice; rename one of them")
    return fields


def _jsonl_records(data: bytes) -> Iterator[Record]:
    for line, text in enumerate(_decoded(data).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            value = strict_json.parse(text)
        except ValueError as error:
            raise EvalSetError(f"line {line} is not strict JSON; write one object a line") from error
        if not isinstance(value, dict):
            raise EvalSetError(f"line {line} holds no JSON object; write one object a line")
        yield Record(line, value)


def _parquet_records(data: bytes) -> Iterator[Record]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        rows = parquet.read_table(pa.BufferReader(data)).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise EvalSetError(f"the file is no readable Parquet ({type(error).__name__}); write it again") from error
    for line, values in enumerate(rows, start=1):
        yield Record(line, values)


FORMATS: Mapping[str, Callable[[bytes], Iterator[Record]]] = {
    "csv": _csv_records,
    "jsonl": _jsonl_records,
    "parquet": _parquet_records,
}
"""Format name to reader."""


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise EvalSetError(f"line {line} is not UTF-8 (byte {error.start}); convert the file to UTF-8") from error
