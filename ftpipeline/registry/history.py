"""The append-only history of moves."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, insert, select

from ftpipeline.digest import Digest
from ftpipeline.errors import InputError
from ftpipeline.registry.records import Entry, HistoryRow
from ftpipeline.registry.stages import Stage
from ftpipeline.store.tables import registry_history


@dataclass(frozen=True)
class Note:
    """Who moves an entry, why and when.

    Attributes:
        actor: stated by the caller, not authenticated.
        reason: in a person's words.
        time: UTC, ISO 8601.

    Raises:
        InputError: actor or reason is blank.
    """

    actor: str
    reason: str
    time: str

    def __post_init__(self) -> None:
        if not self.actor.strip() or not self.reason.strip():
            raise InputError("a registry move needs an actor and a reason; say who moves it and why")


def append(
    connection: Connection,
    entry: Entry,
    to: Stage,
    generation: int,
    note: Note,
    *,
    came_from: Stage | None,
    receipt: Digest | None = None,
) -> None:
    """Add one move of `entry` to the history; a registration comes from no stage."""
    row = {
        "name": entry.name,
        "entry_id": entry.id,
        "digest": entry.artifact,
        "from_stage": came_from,
        "to_stage": to,
        "generation": generation,
        "actor": note.actor,
        "reason": note.reason,
        "receipt": receipt,
        "time": note.time,
    }
    connection.execute(insert(registry_history).values(row))


def rows(connection: Connection, name: str) -> list[HistoryRow]:
    """Return the moves under `name`, oldest first."""
    query = select(registry_history).where(registry_history.c.name == name).order_by(registry_history.c.seq)
    return [_row(row) for row in connection.execute(query).mappings()]


def previous_production(connection: Connection, name: str) -> int | None:
    """Return the entry that stood in production before the current one, if one did.

    What was rolled back from is forgotten: a second rollback goes further back, never forward to it again. What was
    deleted since is passed over.
    """
    table = registry_history
    query = select(table.c.entry_id, table.c.from_stage, table.c.to_stage).where(
        table.c.name == name, table.c.to_stage.in_((Stage.PRODUCTION, Stage.DELETED))
    )
    stack: list[int] = []
    for entry_id, came_from, to_stage in connection.execute(query.order_by(table.c.seq)):
        if to_stage == Stage.DELETED:
            stack = [other for other in stack if other != entry_id]
        elif came_from == Stage.RETIRED:
            del stack[-1]
        else:
            stack.append(entry_id)
    return stack[-2] if len(stack) > 1 else None


def receipts(connection: Connection, entry_id: int) -> set[Digest]:
    """Return the gate records that ever spoke for an entry."""
    table = registry_history
    query = select(table.c.receipt).where(table.c.entry_id == entry_id, table.c.receipt.is_not(None))
    return {Digest(receipt) for receipt in connection.scalars(query)}


def in_production_since(connection: Connection, name: str) -> datetime | None:
    """Return when production of `name` was last moved; None when it never was."""
    table = registry_history
    query = select(table.c.time).where(table.c.name == name, table.c.to_stage == Stage.PRODUCTION)
    time = connection.scalar(query.order_by(table.c.seq.desc()).limit(1))
    return None if time is None else datetime.fromisoformat(time)


def _row(row: RowMapping) -> HistoryRow:
    return HistoryRow(
        generation=row["generation"],
        digest=row["digest"],
        from_stage=None if row["from_stage"] is None else Stage(row["from_stage"]),
        to_stage=Stage(row["to_stage"]),
        actor=row["actor"],
        reason=row["reason"],
        receipt=row["receipt"],
        time=row["time"],
    )
