"""Streams one column of texts out of a file, a piece at a time: a Parquet row group, or some lines of CSV or JSONL."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ftpipeline.errors import SourceError, SourceUnavailableError
from ftpipeline.steps.leakage.layout import Texts
from ftpipeline.steps.leakage.texts import CHUNK_ROWS, batches, from_arrow, text_at


def read_column(path: Path, column: str) -> Iterator[Texts]:
    """Yield the texts of a column in file order; rows are counted from 0, lines with nothing on them are none.

    Raises:
        SourceUnavailableError: the file is missing or unreadable.
        SourceError: it is in no known format, has no such column, or a row has no text there.
    """
    if path.suffix not in _READERS:
        raise SourceError(f"{path} has the suffix {path.suffix!r}; use one of {', '.join(_READERS)}")
    try:
        yield from _READERS[path.suffix](path, column)
    except SourceError as error:
        raise SourceError(f"{path}, column {column}: {error}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 ({error.reason}); convert the file") from error
    except OSError as error:
        raise SourceUnavailableError(f"{path} cannot be read ({error.strerror or error}); check the path") from error


def read_strings(path: Path, column: str) -> list[str]:
    """Return a column as strings; raises as `read_column` does."""
    return [text_at(texts, row) for texts in read_column(path, column) for row in range(len(texts.offsets) - 1)]


def _parquet(path: Path, column: str) -> Iterator[Texts]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            _require(column, file.schema_arrow.names)
            first = 0
            for group in range(file.num_row_groups):
                # One row group at a time: over the whole file, old column chunks would be kept. Small pieces take less
                # memory and half the time: they are searched while they are in the processor's cache.
                for piece in file.iter_batches(CHUNK_ROWS, [group], [column], use_threads=False):
                    yield from_arrow(piece.column(0), first)
                    first += len(piece)
    except pa.ArrowException as error:
        raise SourceError(f"the file is no readable Parquet ({type(error).__name__}); write it again") from error


def _csv(path: Path, column: str) -> Iterator[Texts]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        yield from batches(_csv_texts(reader, column))


def _csv_texts(reader: Any, column: str) -> Iterator[str]:
    try:
        header: list[str] = next(reader, [])
        _require(column, header)
        place = header.index(column)
        for fields in reader:
            if fields and len(fields) != len(header):
                line = f"line {reader.line_num} has {len(fields)} fields, the header {len(header)}"
                raise SourceError(f"{line}; quote the text")
            if fields:
                yield fields[place]
    except csv.Error as error:
        raise SourceError(f"line {reader.line_num} is not CSV ({error}); correct the quotes") from error


def _jsonl(path: Path, column: str) -> Iterator[Texts]:
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        yield from batches(_jsonl_text(line, number, column) for number, line in enumerate(file, 1) if line.strip())


def _jsonl_text(line: str, number: int, column: str) -> str:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise SourceError(f"line {number} is not JSON; write one object a line") from error
    if not isinstance(record, dict) or not isinstance(record.get(column), str):
        raise SourceError(f"line {number} has no text there; write one object with it a line")
    return str(record[column])


def _require(column: str, names: list[str]) -> None:
    if column not in names:
        raise SourceError(f"there is no such column; the file has {', '.join(names) or 'none'}")


_READERS: Mapping[str, Callable[[Path, str], Iterator[Texts]]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}
"""Suffix to reader."""
