"""Stage pointers: rows that say which entry a stage of a name holds, moved only by compare-and-swap."""

from sqlalchemy import Connection, insert, select, update

from ftpipeline.digest import Digest
from ftpipeline.errors import StaleGenerationError
from ftpipeline.registry.records import Pointer
from ftpipeline.registry.stages import POINTED, Stage
from ftpipeline.store.database import one_writer
from ftpipeline.store.tables import registry_entries, registry_pointers

Pointers = dict[Stage, Pointer]


def read_pointers(connection: Connection, name: str) -> Pointers:
    """Return the pointers of all stages that have one; what was never set is empty at generation 0."""
    table = registry_pointers
    query = (
        select(table.c.stage, table.c.entry_id, registry_entries.c.artifact, table.c.generation)
        .outerjoin(registry_entries, registry_entries.c.id == table.c.entry_id)
        .where(table.c.name == name)
    )
    pointers = {stage: Pointer(name, stage, None, None, 0) for stage in POINTED}
    for stage, entry_id, artifact, generation in connection.execute(query):
        digest = None if artifact is None else Digest(artifact)
        pointers[Stage(stage)] = Pointer(name, Stage(stage), entry_id, digest, generation)
    return pointers


def lock_pointers(connection: Connection, name: str) -> Pointers:
    """Return the pointers of `name`, and keep everybody else from moving any until the transaction ends."""
    one_writer(connection, registry_pointers)
    return read_pointers(connection, name)


def check_generation(pointer: Pointer, expect: int) -> None:
    """Refuse to go on from a generation that no longer stands.

    Raises:
        StaleGenerationError: the pointer was moved since the caller read it.
    """
    if pointer.generation != expect:
        raise _stale(pointer, expect)


def swap(connection: Connection, pointer: Pointer, entry_id: int | None) -> int:
    """Let the pointer hold `entry_id`, if it still is as it was read, and return its new generation.

    Raises:
        StaleGenerationError: somebody else moved it.
    """
    table = registry_pointers
    values = {"entry_id": entry_id, "generation": pointer.generation + 1}
    if pointer.generation == 0:
        connection.execute(insert(table).values(name=pointer.name, stage=pointer.stage, **values))
        return 1
    is_it = (table.c.name == pointer.name, table.c.stage == pointer.stage, table.c.generation == pointer.generation)
    if connection.execute(update(table).where(*is_it).values(values)).rowcount != 1:
        raise _stale(read_pointers(connection, pointer.name)[pointer.stage], pointer.generation)
    return pointer.generation + 1


def _stale(pointer: Pointer, expect: int) -> StaleGenerationError:
    held = pointer.digest or "nothing"
    return StaleGenerationError(
        f"{pointer.name}@{pointer.stage} is at generation {pointer.generation}, not {expect}, and holds {held};"
        " look at it and decide again",
        expect,
        pointer.generation,
    )
