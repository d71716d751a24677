"""DuckDB connections for steps."""

import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def locked_duckdb() -> "duckdb.DuckDBPyConnection":
    """Return a connection to an empty database in memory that refuses files, extensions and changes of settings.

    Its queries read what is registered with it (`connection.register(name, table)`) and nothing else.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config={"temp_directory": tempfile.gettempdir()})
    connection.execute("SET enable_external_access = false")  # after this, no folder can be named any more
    connection.execute("SET lock_configuration = true")
    return connection
