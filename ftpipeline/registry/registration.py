"""Registering what a gate has judged, inside one transaction."""

from collections.abc import Mapping

from sqlalchemy import Connection

from ftpipeline.digest import Digest
from ftpipeline.errors import GateRecordError, ReplayedGateError
from ftpipeline.registry import entries, history, moves
from ftpipeline.registry.gate_records import GateRecord
from ftpipeline.registry.history import Note
from ftpipeline.registry.pointers import Pointers, swap
from ftpipeline.registry.records import Entry, Pointer
from ftpipeline.registry.stages import UNDECIDED, Stage


def add(
    connection: Connection, pointers: Pointers, columns: Mapping[str, str], record: GateRecord, note: Note
) -> Entry:
    """Add an entry: the new candidate of its name, or a rejection with the gate's reasons.

    Args:
        connection: a writing transaction.
        pointers: of the entry's name, locked.
        columns: name, artifact, manifest, base_model, report, run_id and week.
        record: the gate record.
        note: who registers.
    """
    stage = Stage.CANDIDATE if record.verdict.is_for else Stage.REJECTED
    judged = {"gate": record.digest, "verdict": record.verdict, "stage": stage, "registered": note.time}
    entry = entries.add(connection, {**columns, **judged}, record.reasons)
    generation = 0 if stage is Stage.REJECTED else _point(connection, pointers[stage], entry)
    history.append(connection, entry, stage, generation, note, came_from=None, receipt=record.digest)
    return entry


def _point(connection: Connection, pointer: Pointer, entry: Entry) -> int:
    """Point the candidate stage at a new entry, unless it holds one of a later week: a backfill moves nothing back."""
    if pointer.entry_id is not None and entries.by_id(connection, pointer.entry_id).week > entry.week:
        return pointer.generation
    return swap(connection, pointer, entry.id)


def renew(
    connection: Connection, pointers: Pointers, entry: Entry, report: Digest, record: GateRecord, note: Note
) -> Entry:
    """Let a newer gate record speak for a known entry; what is rejected, retired or in production stays as it is.

    A week that is run again after production moved is gated against the new production. Its entry then either may be
    promoted again, or is rejected.

    Raises:
        ReplayedGateError: the record spoke for the entry before, and a newer one took its place.
    """
    if entry.gate != record.digest and record.digest in history.receipts(connection, entry.id):
        raise ReplayedGateError(
            f"gate record {record.digest} of {entry.artifact} was replaced by {entry.gate}; run the week again"
        )
    if entry.stage not in UNDECIDED or entry.gate == record.digest:
        return entry
    entries.set_gate(connection, entry.id, report, record.digest, record.verdict)
    if record.verdict.is_for:
        generation = pointers[entry.stage].generation
        history.append(connection, entry, entry.stage, generation, note, came_from=entry.stage, receipt=record.digest)
    else:
        moves.reject(connection, pointers, entry, note, record.reasons, receipt=record.digest)
    return entries.by_id(connection, entry.id)


def in_production(connection: Connection, pointers: Pointers, record: GateRecord) -> Entry:
    """Return the production entry that a record with verdict `already_production` speaks of.

    Raises:
        GateRecordError: production holds another artifact by now.
    """
    standing = pointers[Stage.PRODUCTION]
    if standing.entry_id is None or standing.digest != record.candidate:
        raise GateRecordError(
            f"gate record {record.digest} takes {record.candidate} for production, which is"
            f" {standing.digest or 'empty'}; run the week again"
        )
    return entries.by_id(connection, standing.entry_id)
