"""Moves inside one transaction: the entry's stage, the pointers it leaves and takes, and the row of history."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from ftpipeline.digest import Digest
from ftpipeline.errors import TransitionError
from ftpipeline.registry import entries, history
from ftpipeline.registry.history import Note
from ftpipeline.registry.pointers import Pointers, swap
from ftpipeline.registry.provenance import refuse_tainted
from ftpipeline.registry.records import Entry, Resolution
from ftpipeline.registry.stages import Stage


def check_free(pointers: Pointers, stage: Stage) -> None:
    """Refuse to push an entry out of shadow or canary, where it is being measured.

    Raises:
        TransitionError: the stage is occupied.
    """
    held = pointers[stage]
    if stage != Stage.PRODUCTION and held.entry_id is not None:
        raise TransitionError(f"{held.name}@{stage} holds {held.digest}; promote or reject that one first")


def place(
    connection: Connection, pointers: Pointers, entry: Entry, stage: Stage, note: Note, *, receipt: Digest | None = None
) -> Resolution:
    """Let `entry` be what `stage` holds; whatever stood in production there is retired with it.

    Raises:
        QuarantinedError: the artifact, or something it was made from, is under quarantine.
    """
    refuse_tainted(connection, entry.artifact)
    if stage == Stage.PRODUCTION and (replaced := pointers[stage].entry_id) is not None:
        entries.set_stage(connection, replaced, Stage.RETIRED)
    _leave(connection, pointers, entry)
    generation = swap(connection, pointers[stage], entry.id)
    entries.set_stage(connection, entry.id, stage)
    history.append(connection, entry, stage, generation, note, came_from=entry.stage, receipt=receipt)
    return Resolution(entry.name, stage, entry.artifact, generation)


def reject(
    connection: Connection,
    pointers: Pointers,
    entry: Entry,
    note: Note,
    reasons: Sequence[Mapping[str, str]],
    *,
    receipt: Digest | None = None,
) -> None:
    """Reject `entry` for good, and clear the pointer that holds it."""
    generation = _leave(connection, pointers, entry)
    entries.set_stage(connection, entry.id, Stage.REJECTED)
    entries.set_reasons(connection, entry.id, reasons)
    history.append(connection, entry, Stage.REJECTED, generation, note, came_from=entry.stage, receipt=receipt)


def delete(connection: Connection, entry: Entry, note: Note) -> None:
    """Let go of the bytes of an entry that stands under no pointer; its row and history stay."""
    entries.set_stage(connection, entry.id, Stage.DELETED)
    history.append(connection, entry, Stage.DELETED, 0, note, came_from=entry.stage)


def _leave(connection: Connection, pointers: Pointers, entry: Entry) -> int:
    """Clear the pointer of the entry's stage if it holds the entry, and return that pointer's generation."""
    pointer = pointers.get(entry.stage)
    if pointer is None:  # retired entries stand under no pointer
        return 0
    return swap(connection, pointer, None) if pointer.entry_id == entry.id else pointer.generation
