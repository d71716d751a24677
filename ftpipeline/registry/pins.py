"""Pins: which production a run is gated against, written once per run."""

from sqlalchemy import Connection, insert, select

from ftpipeline.registry.pointers import read_pointers
from ftpipeline.registry.records import Pin
from ftpipeline.registry.stages import Stage
from ftpipeline.store.database import one_writer
from ftpipeline.store.tables import production_pins


def find(connection: Connection, run_id: str, name: str) -> Pin | None:
    """Return the run's pin, if it has one."""
    table = production_pins
    query = select(table.c.digest, table.c.generation).where(table.c.run_id == run_id, table.c.name == name)
    written = connection.execute(query).one_or_none()
    return None if written is None else Pin(run_id, name, written.digest, written.generation)


def pin(connection: Connection, run_id: str, name: str) -> Pin:
    """Return the run's pin, written now from what stands in production if the run has none.

    Args:
        connection: a writing transaction.
        run_id: the run.
        name: registry name; one that has no entry yet is pinned as having no production.
    """
    one_writer(connection, production_pins)
    written = find(connection, run_id, name)
    if written is not None:
        return written
    standing = read_pointers(connection, name)[Stage.PRODUCTION]
    fresh = Pin(run_id, name, standing.digest, standing.generation)
    values = {"run_id": run_id, "name": name, "digest": fresh.digest, "generation": fresh.generation}
    connection.execute(insert(production_pins).values(values))
    return fresh
