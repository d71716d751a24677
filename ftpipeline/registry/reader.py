"""Reading the registry: what is registered, and what `name@stage` means."""

from sqlalchemy import Connection, select

from ftpipeline.digest import Digest
from ftpipeline.errors import UnknownNameError
from ftpipeline.registry import entries, history
from ftpipeline.registry.pointers import read_pointers
from ftpipeline.registry.provenance import origins, refuse_tainted
from ftpipeline.registry.records import Entry, HistoryRow, Pointer, Resolution
from ftpipeline.registry.stages import POINTED, Stage, stage_named
from ftpipeline.registry.verified import VerifiedTrees
from ftpipeline.store.database import Database
from ftpipeline.store.tables import registry_entries
from ftpipeline.store.trees import Trees


class RegistryReader:
    """The registry for those who only resolve and look."""

    def __init__(self, database: Database, trees: Trees) -> None:
        self._database = database
        self._trees = trees
        self._verified = VerifiedTrees(trees)
        self._origins: dict[Digest, frozenset[Digest]] = {}

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

        Bytes that verified before are hashed again only after a file of them was touched.

        Raises:
            UnknownNameError: the name or stage is unknown, or the stage is empty.
            QuarantinedError: the artifact, or something it was made from, is under quarantine.
            CorruptArtifactError: the artifact is missing or altered.
        """
        found = self.look_up(name, stage)
        self._verified.verify(found.digest)
        return found

    def look_up(self, name: str, stage: str) -> Resolution:
        """Return what `name@stage` means now, for a caller who verifies the bytes.

        Raises:
            UnknownNameError: the name or stage is unknown, or the stage is empty.
            QuarantinedError: the artifact, or something it was made from, is under quarantine.
        """
        with self._database.read() as connection:
            return self._look_up(connection, name, stage)[0]

    def entry_at(self, name: str, stage: str) -> Entry:
        """Return the entry that `name@stage` holds, after verifying its bytes.

        Raises:
            UnknownNameError: the name or stage is unknown, or the stage is empty.
            QuarantinedError: the artifact, or something it was made from, is under quarantine.
            CorruptArtifactError: the artifact is missing or altered.
        """
        with self._database.read() as connection:
            entry = entries.by_id(connection, self._look_up(connection, name, stage)[1])
        self._verified.verify(entry.artifact)
        return entry

    def _look_up(self, connection: Connection, name: str, stage: str) -> tuple[Resolution, int]:
        wanted = stage_named(stage)
        if wanted not in POINTED:
            raise UnknownNameError(f"{name}@{wanted} is no single artifact; resolve one of {', '.join(POINTED)}")
        check_known(connection, name)
        pointer = read_pointers(connection, name)[wanted]
        if pointer.digest is None or pointer.entry_id is None:
            raise UnknownNameError(f"{name}@{wanted} is empty; promote an entry to it first")
        self._refuse_tainted(connection, pointer.digest)
        return Resolution(name, wanted, pointer.digest, pointer.generation), pointer.entry_id

    def _refuse_tainted(self, connection: Connection, artifact: Digest) -> None:
        """Ask for marks every time, and for what an artifact was made from once."""
        if artifact not in self._origins:
            self._origins[artifact] = origins(connection, artifact)
        refuse_tainted(connection, artifact, self._origins[artifact])

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
    query = select(registry_entries.c.id).where(registry_entries.c.name == name).limit(1)
    if connection.scalar(query) is None:
        raise UnknownNameError(f"nothing is registered under {name!r}; see 'ftpipeline registry list'")
