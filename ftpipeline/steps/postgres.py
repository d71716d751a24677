"""Rows of a PostgreSQL database, read in one read-only transaction through a cursor that the server keeps."""

import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ftpipeline.errors import MissingDependencyError, SourceError, SourceUnavailableError
from ftpipeline.steps.ports import RowSource

if TYPE_CHECKING:
    import psycopg
    import pyarrow

_BATCH = 10_000  # rows that are in flight at a time
_CURSOR = "ftpipeline_rows"
_SESSION = "SET TIME ZONE 'UTC'; SET default_transaction_read_only = on; SET standard_conforming_strings = on"
# What a `$name` is not looked for in: texts, quoted names, comments and dollar-quoted texts.
_PARAMETER = re.compile(
    r"""'(?:[^']|'')*+'|"[^"]*+"|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|(\$\w*\$).*?\1|\$([A-Za-z_]\w*)""", re.DOTALL
)
_EPOCH = 946_684_800_000_000  # microseconds from 1970 to 2000, where PostgreSQL counts from
_LARGEST = 2**63 - 1


class PostgresSource(RowSource):
    """A PostgreSQL database, reached by a URL that only the environment knows.

    A statement gets those of the given parameters that it names.

    Attributes:
        name: what the connection is called in messages and records.
        variable: the environment variable that holds the URL.
    """

    code_version = "1"

    def __init__(self, name: str, variable: str) -> None:
        self.name = name
        self.variable = variable

    def _fetch(self, sql: str, parameters: Mapping[str, object]) -> "pyarrow.Table":
        import pyarrow as pa

        statement, values = _numbered(sql, parameters)
        with self._cursor() as cursor, self._explained():
            cursor.execute(statement, values)
            schema = _schema(cursor.description or ())
            batches = []
            while rows := cursor.fetchmany(_BATCH):
                columns = zip(*rows, strict=True)
                arrays = [_array(column, field) for column, field in zip(columns, schema, strict=True)]
                batches.append(pa.record_batch(arrays, schema=schema))
            return pa.Table.from_batches(batches, schema)

    @contextmanager
    def _cursor(self) -> "Iterator[psycopg.RawServerCursor[Any]]":
        try:
            import psycopg
        except ImportError as error:
            raise MissingDependencyError("a PostgreSQL source needs psycopg; install ftpipeline[postgres]") from error
        try:
            connection = psycopg.connect(self._url(), client_encoding="UTF8", autocommit=True)
        except psycopg.Error as error:  # its message may quote the URL
            raise SourceUnavailableError(
                f"source connection {self.name!r} cannot be opened ({type(error).__name__}); "
                f"check the server and the URL in {self.variable}"
            ) from None
        with connection:
            connection.execute(_SESSION)
            for oid in (1114, 1184):
                connection.adapters.register_loader(oid, _microseconds())
            with connection.transaction(), psycopg.RawServerCursor(connection, _CURSOR) as cursor:
                cursor.format = psycopg.pq.Format.BINARY
                yield cursor

    def _url(self) -> str:
        url = os.environ.get(self.variable)
        if not url:
            raise SourceUnavailableError(
                f"source connection {self.name!r}: {self.variable} is not set; set it to the URL of the database"
            )
        return re.sub(r"^postgresql\+\w+://", "postgresql://", url)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn psycopg's errors into ours; only those that speak of the query alone are quoted."""
        import psycopg
        from psycopg import errors

        try:
            yield
        except (errors.SyntaxErrorOrAccessRuleViolation, errors.ReadOnlySqlTransaction) as error:
            told = error.diag.message_primary or type(error).__name__
            raise SourceError(f"source query does not run: {told}; correct source.query") from None
        except psycopg.OperationalError as error:
            raise SourceUnavailableError(
                f"source connection {self.name!r} broke off ({type(error).__name__}); check the server"
            ) from None
        except psycopg.Error as error:
            raise SourceError(
                f"source query stops at a value ({type(error).__name__}); correct the casts in source.query"
            ) from None


def _numbered(sql: str, parameters: Mapping[str, object]) -> tuple[str, list[object]]:
    """Return the statement with `$1, $2, ...` for its `$name`s, and their values in that order."""
    order: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[2]
        if name is None:
            return match[0]
        if name not in parameters:
            raise SourceError(f"source query names ${name}, which has no value; declare it in source.parameters")
        return f"${order.setdefault(name, len(order) + 1)}"

    statement = _PARAMETER.sub(number, sql)
    return statement, [parameters[name] for name in order]


def _schema(columns: "Sequence[psycopg.Column]") -> "pyarrow.Schema":
    """Return Arrow types; a type that no part of a row can have is binary, which the intake refuses by name."""
    import pyarrow as pa

    times = {1114: pa.timestamp("us"), 1184: pa.timestamp("us", tz="UTC")}
    types = {oid: pa.string() for oid in (18, 19, 25, 1042, 1043, 2950)}
    types |= {oid: pa.int64() for oid in (20, 21, 23)} | {16: pa.bool_(), 700: pa.float64(), 701: pa.float64()}
    types |= times | {1082: pa.date32(), 1700: pa.decimal128(38, 9)}
    return pa.schema([(column.name, types.get(column.type_code, pa.binary())) for column in columns])


def _array(column: Sequence[Any], field: "pyarrow.Field") -> "pyarrow.Array":
    import pyarrow as pa

    if pa.types.is_timestamp(field.type):
        return pa.array(column, pa.int64()).cast(field.type)
    if pa.types.is_string(field.type):
        return pa.array([None if value is None else str(value) for value in column], field.type)
    if pa.types.is_int64(field.type):
        return pa.array(column, field.type)
    raise SourceError(f"source column {field.name!r} is {field.type}; cast it to text in source.query")


def _microseconds() -> type:
    """Return a loader of times as counts: to Python's own types there are values out of range, infinity among them."""
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    class Microseconds(Loader):
        format = Format.BINARY

        def load(self, data: Any) -> int:
            count: int = struct.unpack(">q", bytes(data))[0]
            return min(count + _EPOCH, _LARGEST)

    return Microseconds
