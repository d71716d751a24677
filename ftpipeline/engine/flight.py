"""Single flight: of all who want one key's result, one computes it and the others wait for that.

Laws: a result is recorded only by the one who still holds the key's lease, in the same transaction; a holder that died
is taken over after its time to live; nobody waits longer than a stated patience. A holder that was stopped for longer
than its time to live (a suspended machine) may go on computing beside its successor for a while, but not record.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ftpipeline.digest import Digest, parse
from ftpipeline.engine.holder import this_process
from ftpipeline.errors import CorruptArtifactError, DatabaseError, LeaseLostError
from ftpipeline.records import LineageRecord
from ftpipeline.store.leases import Lease, Leases
from ftpipeline.store.results import StepResults

_BEATS = 4  # renewals in one time to live, so that a late one or two do no harm


@dataclass(frozen=True)
class Pace:
    """How long things may take, in seconds.

    Attributes:
        ttl: a holder that shows no sign of life for so long is dead.
        poll: between two looks of one who waits.
        patience: after so long a wait for a living holder, the wait is given up.
    """

    ttl: float = 10.0
    poll: float = 0.25
    patience: float = 24 * 3600.0


@dataclass(frozen=True)
class Flight:
    """How a result was come by.

    Attributes:
        record: the result that stands for the key.
        computed: whether this very call computed it.
    """

    record: LineageRecord
    computed: bool


DEFAULT_PACE = Pace()


def single_flight(
    leases: Leases,
    results: StepResults,
    key: Digest,
    compute: Callable[[], LineageRecord],
    *,
    is_usable: Callable[[LineageRecord], bool] = lambda record: True,
    on_refusal: Callable[[str], None] = lambda holder: None,
    pace: Pace = DEFAULT_PACE,
) -> Flight:
    """Return the key's result, computed by exactly one of all callers in all processes.

    Args:
        leases: where the key's lease is kept.
        results: where the result is recorded.
        key: the step key; also the name of its lease.
        compute: computes the result, stores its bytes and returns the record of it, unrecorded.
        is_usable: tells whether the bytes of a recorded result are there; if not, it is computed again.
        on_refusal: called with the holder whenever somebody else has the lease.
        pace: time to live, poll interval and patience.

    Raises:
        CorruptArtifactError: the recorded result lost its bytes, and computing it again gave others.
        LeaseLostError: a living holder did not finish within the patience.
        QuarantinedError: the computed output is under quarantine.
        Exception: whatever `compute` raises; the next one who waits then computes for itself.
    """
    deadline = time.monotonic() + pace.patience
    while True:
        known = results.use(key)
        if known is not None and is_usable(known):
            return Flight(known, computed=False)
        lease = leases.acquire(key, this_process(), pace.ttl)
        if lease is not None:
            flight = _fly(leases, results, lease, compute, is_usable)
            if flight is not None:
                return flight
        elif time.monotonic() >= deadline:
            raise LeaseLostError(
                f"step key {key} was held by {leases.held().get(key)} for {pace.patience:g} s; "
                "see whether that process still works, or end it, and run again"
            )
        elif holder := leases.held().get(key):
            on_refusal(holder)
        time.sleep(pace.poll)


def _fly(
    leases: Leases,
    results: StepResults,
    lease: Lease,
    compute: Callable[[], LineageRecord],
    is_usable: Callable[[LineageRecord], bool],
) -> Flight | None:
    """Compute and record under the lease; None when it was lost on the way and somebody else computes."""
    with kept_alive(leases, lease):
        known = results.use(parse(lease.name))
        if known is not None and is_usable(known):
            return Flight(known, computed=False)  # recorded between the last look and the lease
        record = compute()
        try:
            standing = results.record(record, lease)
        except LeaseLostError:
            return None
        if standing.output != record.output and not is_usable(standing):
            other = f"missing objects, and its step made {record.output} when it was run again"
            raise CorruptArtifactError(standing.output, other, results.dependants(standing.output))
        return Flight(standing, computed=True)


@contextmanager
def kept_alive(leases: Leases, lease: Lease) -> Iterator[None]:
    """Renew the lease from a thread of its own, and give it back at the end."""
    done = threading.Event()
    thread = threading.Thread(target=_beat, args=(leases, lease, done), name=f"lease {lease.name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        leases.release(lease)


def _beat(leases: Leases, lease: Lease, done: threading.Event) -> None:
    while not done.wait(lease.ttl / _BEATS):
        try:
            leases.renew(lease)
        except LeaseLostError:
            return  # the record is fenced: whoever computes finds out there
        except DatabaseError:
            continue  # the next beat tries again; if none gets through, another takes over and the record is fenced
