"""What may be deleted: nothing that a stage holds, and nothing that a rollback would return to before its time.

Deleting lets go of the bytes: the registry no longer asks `gc` to keep them. Entry, receipts and history stay.
"""

import os
import re
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from ftpipeline.errors import InputError, ProtectedArtifactError
from ftpipeline.registry import history
from ftpipeline.registry.records import Entry
from ftpipeline.registry.stages import DELETABLE
from ftpipeline.store.tables import registry_entries, registry_pointers

_VARIABLE = "FTPIPELINE_TRAFFIC_CYCLE_DAYS"
_WEEK = "7"


def traffic_cycle() -> timedelta:
    """Return how long a new production must have served before the one before it may be deleted.

    Raises:
        InputError: FTPIPELINE_TRAFFIC_CYCLE_DAYS is no positive number.
    """
    named = os.environ.get(_VARIABLE) or _WEEK
    if not re.fullmatch(r"\d{1,6}(\.\d+)?", named) or float(named) == 0:
        raise InputError(f"{_VARIABLE}={named!r} is no positive number of days; give one, for example 7")
    return timedelta(days=float(named))


def check_deletable(connection: Connection, entry: Entry, cycle: timedelta, now: datetime) -> None:
    """Refuse to delete what is or may soon be served.

    Args:
        connection: a transaction in which no pointer moves.
        entry: the entry to be deleted.
        cycle: how long the production after it must have served.
        now: the time, with its zone.

    Raises:
        ProtectedArtifactError: a stage of any name holds the artifact, the entry is still undecided, or a rollback
            would return to it.
    """
    if (place := _held(connection, entry)) is not None:
        raise ProtectedArtifactError(f"{place} holds {entry.artifact}; it can be deleted once it was replaced there")
    if entry.stage not in DELETABLE:
        raise ProtectedArtifactError(
            f"{entry.name} has {entry.artifact} as {entry.stage}; only what is {' or '.join(DELETABLE)} can be deleted"
        )
    if history.previous_production(connection, entry.name) == entry.id:
        _check_cycle(connection, entry, cycle, now)


def _held(connection: Connection, entry: Entry) -> str | None:
    """Return which stage holds the artifact of the entry, under whatever name and manifest."""
    query = (
        select(registry_pointers.c.name, registry_pointers.c.stage)
        .join(registry_entries, registry_entries.c.id == registry_pointers.c.entry_id)
        .where(registry_entries.c.artifact == entry.artifact)
    )
    held = connection.execute(query.order_by(registry_pointers.c.name, registry_pointers.c.stage)).first()
    return None if held is None else f"{held.name}@{held.stage}"


def _check_cycle(connection: Connection, entry: Entry, cycle: timedelta, now: datetime) -> None:
    since = history.in_production_since(connection, entry.name)
    if since is None or now < since + cycle:
        until = "its successor is in production" if since is None else (since + cycle).isoformat(timespec="minutes")
        raise ProtectedArtifactError(
            f"{entry.name}@production was moved at {since}, and a rollback returns to {entry.artifact};"
            f" it can be deleted after a full traffic cycle ({cycle}), at {until}"
        )
