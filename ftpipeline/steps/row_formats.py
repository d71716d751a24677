"""The text formats of ticket files, record by record: what cannot be read as declared comes out as malformed.

Nothing is guessed: delimiter and quote are declared, no spelling but the empty field means missing, and values are
text.
"""

import csv
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ftpipeline.errors import SourceError
from ftpipeline.steps import strict_json
from ftpipeline.steps.file_lines import Lines

FORMATS = ("csv", "jsonl", "parquet")


@dataclass(frozen=True)
class Dialect:
    """How a file is written.

    Attributes:
        format: one of FORMATS.
        encoding: name of a Python codec; Parquet has its own.
        delimiter: between fields of CSV.
        quote: around fields of CSV; doubled inside them.
    """

    format: str
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'


@dataclass(frozen=True)
class Place:
    """Where a record stands.

    Attributes:
        line: line it starts on, from 1; None in a file without lines.
        row: place among the records, from 1; None in a database, whose rows have no order.
        byte_offset: bytes of the file in front of that line; None in a file without lines.
    """

    line: int | None
    row: int | None
    byte_offset: int | None


@dataclass(frozen=True)
class Malformed:
    """A record that is not what the format asks for."""

    place: Place
    reason: str
    raw: str


Record = tuple[Place, Mapping[str, str | None] | Malformed]


def csv_records(data: bytes, codec: str, dialect: Dialect) -> Iterator[Record]:
    """Yield the records of a CSV file; a line with nothing on it is none.

    Raises:
        SourceError: there is no header, or it names a column twice.
    """
    csv.field_size_limit(sys.maxsize)  # the default would refuse texts that other formats take
    lines = Lines(data, codec, carriage_return_ends=True)
    reader = csv.reader(lines, strict=True, delimiter=dialect.delimiter, quotechar=dialect.quote)
    header = next(reader, [])
    if not header or len(set(header)) != len(header):
        raise SourceError("source file: line 1 is no header that names every column once; correct it")
    row = 0
    while True:
        line, offset = reader.line_num + 1, lines.position
        fields: list[str] = []
        try:
            fields = next(reader)
            reason = "" if len(fields) == len(header) else "field_count"
        except StopIteration:
            return
        except csv.Error:
            reason = "malformed_csv"
        if fields or reason == "malformed_csv":
            row += 1
            place = Place(line, row, offset)
            raw = dialect.delimiter.join(fields)
            yield place, _checked(dict(zip(header, fields, strict=False)), reason, place, raw)


def jsonl_records(data: bytes, codec: str, columns: Collection[str] | None) -> Iterator[Record]:
    """Yield the records of a file of JSON lines; an empty line is none.

    Args:
        data: the whole file.
        codec: its encoding.
        columns: fields to return; None returns those that hold text.
    """
    row, line, offset = 0, 0, 0
    lines = Lines(data, codec, carriage_return_ends=False)  # any end but LF is no end of a JSON line
    for text in lines:
        line, begin, offset = line + 1, offset, lines.position
        text = text.removesuffix("\n")
        if not text.strip():
            continue
        row += 1
        place = Place(line, row, begin)
        try:
            record = _texts(strict_json.parse(text), columns)
            yield place, _checked(record, "", place, text)
        except ValueError as error:
            yield place, Malformed(place, str(error) if str(error) in _JSON_REASONS else "malformed_json", text)


_JSON_REASONS = ("duplicate_key", "non_finite_number", "not_an_object", "not_text")


def _texts(value: Any, columns: Collection[str] | None) -> dict[str, str | None]:
    if not isinstance(value, dict):
        raise ValueError("not_an_object")
    if columns is None:
        return {name: item for name, item in value.items() if isinstance(item, str)}
    return {name: _as_text(item) for name, item in value.items() if name in columns}


def _as_text(value: Any) -> str | None:
    """Return a value as text; one that has more than one spelling as text is refused."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("not_text")


def _checked(
    record: Mapping[str, str | None], reason: str, place: Place, raw: str
) -> Mapping[str, str | None] | Malformed:
    """Refuse a record that holds what UTF-8 cannot: bytes of another encoding, or half a surrogate pair."""
    values = [raw, *(value for value in record.values() if value is not None)]
    if any(not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value) for value in values):
        reason = "bad_encoding"
    return Malformed(place, reason, raw) if reason else record
