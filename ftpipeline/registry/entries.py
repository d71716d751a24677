"""Rows of registry entries."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from ftpipeline.digest import Digest, canonical_json
from ftpipeline.errors import UnknownNameError
from ftpipeline.registry.records import Entry
from ftpipeline.registry.stages import Stage
from ftpipeline.store.tables import registry_entries

_PREFIX = re.compile(r"(?:sha256:)?([0-9a-f]{12,64})")


def add(connection: Connection, values: Mapping[str, Any], reasons: Sequence[Mapping[str, str]]) -> Entry:
    """Insert an entry; `values` holds every other column but `id`."""
    row = {**values, "reasons": canonical_json(reasons).decode()}
    inserted = connection.execute(insert(registry_entries).values(row).returning(registry_entries.c.id))
    return by_id(connection, inserted.scalar_one())


def by_id(connection: Connection, entry_id: int) -> Entry:
    """Return the entry with that number, which exists."""
    query = select(registry_entries).where(registry_entries.c.id == entry_id)
    return _entry(connection.execute(query).mappings().one())


def find(connection: Connection, name: str, artifact: Digest, manifest: Digest) -> Entry | None:
    """Return the entry of an artifact under a manifest, if there is one."""
    table = registry_entries
    query = select(table).where(table.c.name == name, table.c.artifact == artifact, table.c.manifest == manifest)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _entry(row)


def listing(connection: Connection, name: str | None = None) -> list[Entry]:
    """Return the entries of one name, or of all, oldest first."""
    query = select(registry_entries).order_by(registry_entries.c.id)
    if name is not None:
        query = query.where(registry_entries.c.name == name)
    return [_entry(row) for row in connection.execute(query).mappings()]


def latest(connection: Connection, name: str, artifact: str) -> Entry:
    """Return the newest entry of an artifact.

    Args:
        connection: a transaction.
        name: registry name.
        artifact: its digest, or at least 12 hexadecimal digits of the digest's beginning.

    Raises:
        UnknownNameError: the name has no such artifact, or several that begin so.
    """
    form = _PREFIX.fullmatch(artifact)
    if form is None:
        raise UnknownNameError(f"{artifact!r} names no artifact; give its digest, or its first 12 hexadecimal digits")
    table = registry_entries
    query = select(table).where(table.c.name == name, table.c.artifact.startswith(f"sha256:{form[1]}"))
    found = [_entry(row) for row in connection.execute(query.order_by(table.c.id)).mappings()]
    if not found:
        raise UnknownNameError(f"{name!r} has no entry {artifact}; see 'ftpipeline registry list'")
    if len({entry.artifact for entry in found}) > 1:
        raise UnknownNameError(f"{len(found)} entries of {name!r} begin with {artifact}; give more of the digest")
    return found[-1]


def set_stage(connection: Connection, entry_id: int, stage: Stage) -> None:
    """Record where the entry stands now."""
    _set(connection, entry_id, {"stage": stage})


def set_reasons(connection: Connection, entry_id: int, reasons: Sequence[Mapping[str, str]]) -> None:
    """Record what is held against the entry."""
    _set(connection, entry_id, {"reasons": canonical_json(reasons).decode()})


def set_gate(connection: Connection, entry_id: int, report: Digest, gate: Digest, verdict: str) -> None:
    """Record the newest gate of the entry."""
    _set(connection, entry_id, {"report": report, "gate": gate, "verdict": verdict})


def _set(connection: Connection, entry_id: int, values: Mapping[str, Any]) -> None:
    connection.execute(update(registry_entries).where(registry_entries.c.id == entry_id).values(values))


def _entry(row: RowMapping) -> Entry:
    values = {**row, "reasons": tuple(json.loads(row["reasons"])), "stage": Stage(row["stage"])}
    return Entry(**values)
