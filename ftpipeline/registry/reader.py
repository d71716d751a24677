"""Reading the registry: what is registered, and what `name@stage` means."""

from sqlalchemy import Connection

from ftpipeline.errors import UnknownNameError
from ftpipeline.registry import entries, history
from ftpipeline.registry.pointers import read_pointers
from ftpipeline.registry.records import Entry, HistoryRow, Pointer, Resolution
from ftpipeline.registry.stages import POINTED, Stage, stage_named
from ftpipeline.store.database import Database
from ftpipeline.store.quarantine import refuse_marked
from ftpipeline.store.trees import Trees


class RegistryReader:
    """The registry for those who only resolve and look."""

    def __init__(self, database: Database, trees: Trees) -> None:
        self._database = database
        self._trees = trees

    def names(self) -> list[str]:
        """Return the registered names, sorted."""
        return sorted({entry.name for entry in self.entries()})

    def entries(self, name: str | None = None) -> list[Entry]:
        """Return the entries of one name, or of all, oldest first."""
        with self._database.read() as connection:
            return entries.listing(connection, name)

    def entry(self, name: str, artifact: str) -> Entry:
        """Return the newest entry of an artifact, given by its digest or 12 or more hexadecimal digits of it.

        Raises:
            UnknownNameError: the name has no such artifact, or several that begin so.
        """
        with self._database.read() as connection:
            return entries.latest(connection, name, artifact)

    def history(self, name: str) -> list[HistoryRow]:
        """Return the moves under `name`, oldest first.

        Raises:
            UnknownNameError: nothing was ever registered under it.
        """
        with self._database.read() as connection:
            check_known(connection, name)
            return history.rows(connection, name)

    def resolve(self, name: str, stage: str) -> Resolution:
        """Return the one artifact that `name@stage` means, after verifying its bytes.

        Raises:
            UnknownNameError: the name or stage is unknown, or the stage is empty.
            QuarantinedError: the artifact is under quarantine.
            CorruptArtifactError: the artifact is missing or altered.
        """
        wanted = stage_named(stage)
        if wanted not in POINTED:
            raise UnknownNameError(f"{name}@{wanted} is no single artifact; resolve one of {', '.join(POINTED)}")
        with self._database.read() as connection:
            check_known(connection, name)
            pointer = read_pointers(connection, name)[wanted]
            if pointer.digest is None:
                raise UnknownNameError(f"{name}@{wanted} is empty; promote an entry to it first")
            refuse_marked(connection, pointer.digest)
        self._trees.verify(pointer.digest)
        return Resolution(name, wanted, pointer.digest, pointer.generation)

    def pointers(self, name: str) -> dict[Stage, Pointer]:
        """Return what each stage of `name` holds, empty ones too; their generations are what a promotion expects."""
        with self._database.read() as connection:
            return read_pointers(connection, name)

    def production(self, name: str) -> Pointer:
        """Return what stands in production; empty at generation 0 for a name that never had one."""
        return self.pointers(name)[Stage.PRODUCTION]


def check_known(connection: Connection, name: str) -> None:
    """Refuse a name that nothing was ever registered under.

    Raises:
        UnknownNameError: there is no entry.
    """
    if not entries.listing(connection, name):
        raise UnknownNameError(f"nothing is registered under {name!r}; see 'ftpipeline registry list'")
