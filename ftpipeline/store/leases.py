"""Leases: who alone may do something for now, and fences against those who no longer may.

A holder renews its lease, which raises the row's `beats`. An observer calls the holder dead when the row stood
unchanged for the lease's time to live *by the observer's own monotonic clock*: no two clocks are ever compared, so skew
between machines cannot take a lease from a living holder, nor keep a dead one's. The price is that a dead holder is
noticed one time to live after the first look, not at once.

Laws: at most one holder has the lease's current generation; every change of hands raises the generation by one; what is
written under `fence` is written only if the lease still has the generation that the writer was given.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select, update

from ftpipeline.errors import LeaseLostError
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.tables import leases

Clock = Callable[[], float]
"""Seconds that pass evenly; their zero means nothing."""


@dataclass(frozen=True)
class Lease:
    """What a holder was given.

    Attributes:
        name: what it is for, such as a step key.
        holder: who has it.
        generation: which change of hands gave it; the fencing token.
        ttl: seconds without a renewal after which others may take it.
    """

    name: str
    holder: str
    generation: int
    ttl: float


class Leases:
    """The table of leases, as one observer sees it."""

    def __init__(self, database: Database, clock: Clock = time.monotonic) -> None:
        """Keep the leases in `database` and judge the holders of others by `clock`."""
        self._database = database
        self._clock = clock
        self._first_seen: dict[str, tuple[Hashable, float]] = {}

    def acquire(self, name: str, holder: str, ttl: float) -> Lease | None:
        """Take the lease if it is free or its holder is dead; None while somebody else has it.

        Ask again to find out that a holder died: one look cannot tell.
        """
        with self._database.read() as connection:
            seen = _row(connection, name)
        if seen is not None and seen.holder is not None and not self._is_dead(seen):
            return None
        with self._database.write() as connection:
            one_writer(connection, leases)
            if _row(connection, name) != seen:
                return None
            return _take(connection, seen, Lease(name, holder, 1 if seen is None else seen.generation + 1, ttl))

    def seize(self, name: str, holder: str, ttl: float) -> Lease:
        """Take the lease whoever has it, so that what its holder writes under it from now on is refused."""
        with self._database.write() as connection:
            one_writer(connection, leases)
            seen = _row(connection, name)
            return _take(connection, seen, Lease(name, holder, 1 if seen is None else seen.generation + 1, ttl))

    def renew(self, lease: Lease) -> None:
        """Show that the holder is alive.

        Raises:
            LeaseLostError: another one has taken the lease.
        """
        with self._database.write() as connection:
            self._change(connection, lease, beats=leases.c.beats + 1)

    def release(self, lease: Lease) -> None:
        """Give the lease back, so that the next one need not wait; one that was lost already stays as it is."""
        with self._database.write() as connection:
            connection.execute(_of(lease).values(holder=None))

    def disown(self, name: str, holder: str) -> None:
        """Give the lease back for a process that is known to have ended; no two processes have one holder's name."""
        held = (leases.c.name == name, leases.c.holder == holder)
        with self._database.write() as connection:
            connection.execute(update(leases).where(*held).values(holder=None))

    def check(self, lease: Lease) -> None:
        """Refuse to go on under a lease that was taken over.

        Raises:
            LeaseLostError: another one has taken the lease.
        """
        with self._database.read() as connection:
            _refuse_lost(_row(connection, lease.name), lease)

    def held(self) -> dict[str, str]:
        """Return the names of leases that were not given back, each with its holder, alive or dead."""
        with self._database.read() as connection:
            rows = connection.execute(select(leases).where(leases.c.holder.is_not(None)).order_by(leases.c.name))
            return {row.name: row.holder for row in rows}

    def _is_dead(self, row: Row[Any]) -> bool:
        state, now = (row.generation, row.beats), self._clock()
        known, since = self._first_seen.get(row.name, (None, now))
        if known != state:
            self._first_seen[row.name] = (state, now)
            return False
        return bool(now - since >= row.ttl)

    def _change(self, connection: Connection, lease: Lease, **values: Any) -> None:
        if connection.execute(_of(lease).values(**values)).rowcount != 1:
            _refuse_lost(_row(connection, lease.name), lease)


def fence(connection: Connection, lease: Lease) -> None:
    """Let the rest of the transaction happen only under a lease that still stands, and keep it until the commit.

    Raises:
        LeaseLostError: another one has taken the lease; roll back.
    """
    _refuse_lost(connection.execute(_select(lease.name).with_for_update()).one_or_none(), lease)


def _take(connection: Connection, seen: Row[Any] | None, lease: Lease) -> Lease:
    values = {"holder": lease.holder, "generation": lease.generation, "beats": 0, "ttl": lease.ttl}
    if seen is None:
        connection.execute(leases.insert().values(name=lease.name, **values))
    else:
        connection.execute(update(leases).where(leases.c.name == lease.name).values(values))
    return lease


def _row(connection: Connection, name: str) -> Row[Any] | None:
    return connection.execute(_select(name)).one_or_none()


def _select(name: str) -> Any:
    return select(leases).where(leases.c.name == name)


def _of(lease: Lease) -> Any:
    is_it = (leases.c.name == lease.name, leases.c.generation == lease.generation, leases.c.holder == lease.holder)
    return update(leases).where(*is_it)


def _refuse_lost(row: Row[Any] | None, lease: Lease) -> None:
    if row is None or (row.holder, row.generation) != (lease.holder, lease.generation):
        by = "nobody" if row is None or row.holder is None else row.holder
        raise LeaseLostError(
            f"lease {lease.name} of {lease.holder} (generation {lease.generation}) was lost to {by}; "
            "nothing was written; run again"
        )
