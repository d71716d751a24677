"""Who may train beside others: nobody, unless the record of all of them can be trusted (decision boundary 2).

A job that trains alone needs no record of others. As soon as another one is open, a ledger that is missing, that cannot
be written or of which a chain is broken stops everybody: what they consume of each other could not be traced.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from ftpipeline.cycle.incident import Incidents
from ftpipeline.cycle.scan import NO_LIMITS
from ftpipeline.cycle.scan_interval import scan_interval
from ftpipeline.cycle.watch import is_stale, watch
from ftpipeline.errors import ChainError, DatabaseError, JobHaltedError, LedgerError
from ftpipeline.ledger.chain import Head
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.store.opened import Store

_MISSED = 4  # scans in a row that may be missed before the last one is too old
_FULL_SHARE = 100  # a check of whole chains is repeated after so many times the time that it took
_LEAST_PAUSE = 1.0  # seconds between two checks of what is new


def require_safe_company(store: Store, ledger: Ledger, job_id: str) -> None:
    """Let a job start, or refuse it for the company that it would be in.

    If others are open and the last scan of the fleet is too old, the fleet is scanned first.

    Raises:
        JobHaltedError: the job waits to be isolated; or others train, and the ledger cannot be read, a chain of theirs
            or of the job itself is broken, or the fleet could not be scanned.
    """
    with _halting(job_id):
        _refuse_incident(store, job_id)
        others = [head for head in ledger.jobs(open_only=True) if head.job_id != job_id]
        if not others:
            return
        for head in others:
            ledger.verify(head.job_id)
        if is_stale(store, timedelta(seconds=_MISSED * scan_interval())):
            watch(store, ledger, NO_LIMITS)


class Company:
    """Watches, for a job that trains, that the chains of those who train beside it hold.

    Args:
        ledger: holds the chains.
        job_id: the job that trains.
        clock: seconds that pass evenly.
    """

    def __init__(self, ledger: Ledger, job_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._job_id = job_id
        self._clock = clock
        self._trusted: dict[str, Head] = {}
        self._next_look = self._next_full = clock()

    def check(self) -> None:
        """Look at what came to the chains since the last look, and at whole chains now and then.

        Called at every append: it costs a look at most once a second, and whole chains a hundredth of the time.

        Raises:
            JobHaltedError: the ledger cannot be read, or a chain is broken.
        """
        now = self._clock()
        if now < self._next_look:
            return
        with _halting(self._job_id):
            if now >= self._next_full:
                self._trusted = {}
            self._verify()
        done = self._clock()
        if now >= self._next_full:
            self._next_full = done + max(_LEAST_PAUSE, _FULL_SHARE * (done - now))
        self._next_look = done + _LEAST_PAUSE

    def _verify(self) -> None:
        open_jobs = [head.job_id for head in self._ledger.jobs(open_only=True)]
        if not [job_id for job_id in open_jobs if job_id != self._job_id]:
            return
        for job_id in open_jobs:
            self._trusted[job_id] = self._ledger.verify(job_id, self._trusted.get(job_id))


@contextmanager
def _halting(job_id: str) -> Iterator[None]:
    try:
        yield
    except ChainError as error:
        raise JobHaltedError(f"job {job_id} may not train beside others: {error}") from error
    except (LedgerError, DatabaseError) as error:
        raise JobHaltedError(
            f"job {job_id} may not train where nobody can tell who else does ({error}); repair the ledger first"
        ) from error


def _refuse_incident(store: Store, job_id: str) -> None:
    """Refuse a job that waits to be isolated: what it would do now is tainted before it begins."""
    for incident in Incidents(store.database).waiting():
        if incident.job_id == job_id:
            raise JobHaltedError(
                f"job {job_id} diverged, and incident {incident.name} is not isolated yet; wait for it"
            )
