"""Reads ticket files strictly, record by record: what cannot be read as declared is refused with its place and reason.

Nothing is guessed: encoding, delimiter and quote are declared, a byte order mark is no part of the first column, no
spelling but the empty field means missing, and ids are text. Law: accepted and malformed records together are all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ftpipeline.errors import PipelineFileError, SourceError, SourceUnavailableError
from ftpipeline.steps.row_formats import FORMATS, Dialect, Malformed, Place, csv_records, jsonl_records

if TYPE_CHECKING:
    import pyarrow


@dataclass
class FileRows:
    """The records of a file.

    Attributes:
        table: the readable ones, a column a field.
        places: of the rows of the table.
        malformed: the others.
    """

    table: "pyarrow.Table"
    places: list[Place] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)


class RowFile:
    """A file that holds tickets.

    Attributes:
        path: the file.
        dialect: how it is written.
    """

    code_version = "2"

    def __init__(self, path: Path, dialect: Dialect) -> None:
        self.path = path
        self.dialect = dialect

    def read(self, columns: Sequence[str] | None = None) -> FileRows:
        """Read every record.

        Args:
            columns: the fields to read; None reads all that there are.

        Raises:
            SourceError: no record could have a declared column, or the file as a whole is not in its format.
            SourceUnavailableError: the file is missing or cannot be read.
            PipelineFileError: there is no such format or encoding.
        """
        try:
            if self.dialect.format == "parquet":
                return self._parquet(columns)
            return self._text(self.path.read_bytes(), columns)
        except OSError as error:
            raise SourceUnavailableError(
                f"source file {self.path} cannot be read ({error.strerror}); check source.file.path"
            ) from error

    def _codec(self) -> str:
        name = self.dialect.encoding
        try:
            "".encode(name)
        except LookupError as error:
            raise PipelineFileError(f"source.file.encoding {name!r} is unknown; use utf-8 or a codec's name") from error
        return "utf-8-sig" if name.lower().replace("_", "-") in ("utf-8", "utf8") else name

    def _text(self, data: bytes, columns: Sequence[str] | None) -> FileRows:
        if self.dialect.format == "csv":
            reader = csv_records(data, self._codec(), self.dialect)
        elif self.dialect.format == "jsonl":
            reader = jsonl_records(data, self._codec(), columns)
        else:
            raise PipelineFileError(f"source.file.format {self.dialect.format!r} is none of {', '.join(FORMATS)}")
        kept: list[Mapping[str, str | None]] = []
        places: list[Place] = []
        malformed: list[Malformed] = []
        for place, record in reader:
            if isinstance(record, Malformed):
                malformed.append(record)
            else:
                kept.append(record)
                places.append(place)
        names = columns if columns is not None else list(dict.fromkeys(name for record in kept for name in record))
        return FileRows(_as_table(kept, names, self.path), places, malformed)

    def _parquet(self, columns: Sequence[str] | None) -> FileRows:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            found = parquet.read_schema(self.path).names
            _require(columns or (), found, self.path)
            table = parquet.read_table(self.path, columns=None if columns is None else list(columns))
        except pa.ArrowException as error:
            raise SourceError(
                f"source file {self.path} is no readable Parquet ({type(error).__name__}); write it again"
            ) from error
        return FileRows(table, [Place(None, row, None) for row in range(1, table.num_rows + 1)])


def _as_table(records: Sequence[Mapping[str, str | None]], names: Sequence[str], path: Path) -> "pyarrow.Table":
    import pyarrow as pa

    if records:
        _require(names, list(dict.fromkeys(name for record in records for name in record)), path)
    return pa.table({name: pa.array([record.get(name) for record in records], pa.string()) for name in names})


def _require(names: Sequence[str], found: Sequence[str], path: Path) -> None:
    for name in names:
        if name not in found:
            others = f" (it has {', '.join(found)})" if found else ""
            raise SourceError(f"source file {path.name} has no column {name!r}{others}; correct source.columns")
