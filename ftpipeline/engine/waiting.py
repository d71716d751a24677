"""What one who waits for another's result does meanwhile: say so once, and end the lease of a holder that is gone."""

from sqlalchemy import update

from ftpipeline.digest import Digest
from ftpipeline.engine.holder import is_gone
from ftpipeline.records import StepObserver
from ftpipeline.store.database import Database
from ftpipeline.store.tables import leases


class Waiting:
    """Called with the holder of a key's lease at every refusal.

    Args:
        database: where the lease is kept.
        observer: hears once whom is waited for.
        step: the step that waits.
        key: the step key, which is the name of the lease.
    """

    def __init__(self, database: Database, observer: StepObserver, step: str, key: Digest) -> None:
        self._database = database
        self._observer = observer
        self._step = step
        self._key = key
        self._is_said = False

    def __call__(self, holder: str) -> None:
        """Hear that `holder` has the lease."""
        if is_gone(holder):
            self._observer.said(self._step, "info", f"{holder} has ended without its result; taking over")
            self._disown(holder)
        elif not self._is_said:
            self._observer.said(self._step, "info", f"waiting for {holder}")
            self._is_said = True

    def _disown(self, holder: str) -> None:
        """Give the lease back for a process that cannot; no two processes ever have one holder's name."""
        held = (leases.c.name == self._key, leases.c.holder == holder)
        with self._database.write() as connection:
            connection.execute(update(leases).where(*held).values(holder=None))
