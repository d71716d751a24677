"""The append-only history of moves."""

from dataclasses import dataclass

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

    What was rolled back from is forgotten: a second rollback goes further back, never forward to it again.
    """
    table = registry_history
    query = select(table.c.entry_id, table.c.from_stage).where(
        table.c.name == name, table.c.to_stage == Stage.PRODUCTION
    )
    stack: list[int] = []
    for entry_id, came_from in connection.execute(query.order_by(table.c.seq)):
        if came_from == Stage.RETIRED:
            stack.pop()
        else:
            stack.append(entry_id)
    return stack[-2] if len(stack) > 1 else None


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
