"""Whose rows no snapshot takes in any more: hashes of keys, since the list must not name those it is about."""

from datetime import UTC, datetime

from sqlalchemy import select

from ftpipeline.digest import Digest, parse
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.tables import erased_keys


class ErasedKeyList:
    """The table of erased keys; rows are only added."""

    def __init__(self, database: Database) -> None:
        """Keep the rows in `database`."""
        self._database = database

    def add(self, key: Digest, reason: str) -> None:
        """Add the digest of a key; the first reason stands."""
        with self._database.write() as connection:
            one_writer(connection, erased_keys)
            if connection.scalar(select(erased_keys.c.digest).where(erased_keys.c.digest == key)) is None:
                time = datetime.now(UTC).isoformat(timespec="microseconds")
                connection.execute(erased_keys.insert().values(digest=key, reason=reason, time=time))

    def digests(self) -> tuple[Digest, ...]:
        """Return the digests of all erased keys, sorted."""
        with self._database.read() as connection:
            return tuple(sorted(parse(digest) for digest in connection.scalars(select(erased_keys.c.digest))))
