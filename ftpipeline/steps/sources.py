"""Where rows come from: a DuckDB file that is only read, and eval-set files."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ftpipeline.errors import SourceError, SourceUnavailableError
from ftpipeline.steps.ports import RowSource

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_LOCKED_DOWN = "SET TimeZone='UTC'; SET enable_external_access=false; SET lock_configuration=true"
_CATALOG = "ftpipeline_source"
_COLUMN = re.compile(r"source column (\S+)")


class DuckDBSource(RowSource):
    """A DuckDB database file, opened read-only, in UTC, and unable to reach any other file or host.

    A statement gets those of the given parameters that it names.

    Attributes:
        path: the database file.
    """

    code_version = "1"

    def __init__(self, path: Path) -> None:
        self.path = path

    def _fetch(self, sql: str, parameters: Mapping[str, object]) -> "pyarrow.Table":
        with self._connection() as connection, _explained():
            names = _parameters_of(connection, sql)
            if missing := sorted(names - parameters.keys()):
                raise SourceError(
                    f"source query names ${missing[0]}, which has no value; declare it in source.parameters"
                )
            return connection.sql(sql, params={name: parameters[name] for name in names}).to_arrow_table()

    @contextmanager
    def _connection(self) -> Iterator["duckdb.DuckDBPyConnection"]:
        """Attach the file to a private in-memory database, whose locked settings no other connection shares."""
        import duckdb

        if not self.path.is_file():
            raise SourceUnavailableError(f"source database {self.path} does not exist; check source.duckdb")
        with duckdb.connect(":memory:") as connection:
            try:
                connection.execute(f"ATTACH '{_quoted(self.path)}' AS {_CATALOG} (READ_ONLY)")
            except duckdb.Error as error:
                raise SourceUnavailableError(_unavailable(self.path, error)) from error
            connection.execute(f"USE {_CATALOG}")
            connection.execute(_LOCKED_DOWN)
            yield connection


class FileSource:
    """A file that a source step reads; where it lies is no part of the step's key, its content digest is.

    Attributes:
        path: the file.
    """

    code_version = "1"

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> bytes:
        """Return the file's bytes.

        Raises:
            SourceUnavailableError: the file is missing or unreadable.
        """
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise SourceUnavailableError(
                f"file {self.path} cannot be read ({error.strerror}); check the path in the pipeline file"
            ) from error


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _unavailable(path: Path, error: Exception) -> str:
    text = str(error)
    if "Conflicting lock" in text or "already attached" in text:
        return f"source database {path} is locked by a writer; close the writer, or copy the file and read the copy"
    if "not a valid DuckDB" in text:
        return f"source database {path} is not a DuckDB file; check source.duckdb"
    return f"source database {path} cannot be opened ({type(error).__name__}); check the file and its permissions"


def _parameters_of(connection: "duckdb.DuckDBPyConnection", sql: str) -> set[str]:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SourceError("source query is not one SELECT statement; remove what stands before or after it")
    return set(statements[0].named_parameters)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn duckdb's errors into ours; only those that speak of the query alone are quoted, others may hold row text."""
    import duckdb

    planning = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.PermissionException)
    try:
        yield
    except planning as error:
        raise SourceError(f"source query does not run: {str(error).splitlines()[0]}; correct source.query") from error
    except duckdb.IOException as error:
        raise SourceUnavailableError(
            "source database cannot be read to its end; check the file and the disk"
        ) from error
    except duckdb.Error as error:
        column = _COLUMN.search(str(error))
        where = f" in column {column[1]}" if column else ""
        raise SourceError(
            f"source query stops at a value{where} ({type(error).__name__}); correct the casts in source.query"
        ) from None  # the original message may quote the value
