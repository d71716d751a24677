"""Which content the version of an eval set stands for.

Law: a (name, version) stands for one digest for ever, so that two reports that name it measured the same thing.
"""

from sqlalchemy import Connection, select

from ftpipeline.digest import Digest
from ftpipeline.errors import EvalSetError
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.tables import eval_set_versions


class EvalSetVersions:
    """The table of claimed versions."""

    def __init__(self, database: Database) -> None:
        """Keep the claims in `database`."""
        self._database = database

    def claim(self, name: str, version: str, digest: Digest) -> None:
        """Bind the version to its content, at the first use; later uses are compared with it.

        Raises:
            EvalSetError: the version stands for other content.
        """
        with self._database.write() as connection:
            one_writer(connection, eval_set_versions)
            known = _find(connection, name, version)
            if known is None:
                connection.execute(eval_set_versions.insert().values(name=name, version=version, digest=digest))
            elif known != digest:
                raise EvalSetError(
                    f"eval set {name!r} {version}: its content changed from {known} to {digest}; "
                    "give the changed set a new version, or restore its content"
                )

    def find(self, name: str, version: str) -> Digest | None:
        """Return the content that the version stands for; None when it was never used."""
        with self._database.read() as connection:
            return _find(connection, name, version)

    def versions(self, name: str) -> dict[str, Digest]:
        """Return the content of every claimed version of a set, oldest version first."""
        with self._database.read() as connection:
            return _versions(connection, name)


def newest_version(connection: Connection, name: str) -> tuple[str, Digest] | None:
    """Return the newest claimed version of a set with its content; None when the set was never used."""
    known = _versions(connection, name)
    return list(known.items())[-1] if known else None


def _versions(connection: Connection, name: str) -> dict[str, Digest]:
    columns = eval_set_versions.c
    found = connection.execute(select(columns.version, columns.digest).where(columns.name == name)).all()
    return {
        version: Digest(digest)
        for version, digest in sorted(found, key=lambda row: (int(row.version[1:]), row.version))
    }


def _find(connection: Connection, name: str, version: str) -> Digest | None:
    columns = eval_set_versions.c
    found = connection.scalar(select(columns.digest).where(columns.name == name, columns.version == version))
    return None if found is None else Digest(found)
