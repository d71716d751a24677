"""Writing a job's events, as long as the job's lease is held."""

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from ftpipeline.digest import Digest
from ftpipeline.errors import InputError
from ftpipeline.ledger import rows, signed_heads
from ftpipeline.ledger.events import CloseReason, Draft, Event, Kind, Use, next_events
from ftpipeline.ledger.quarantined import hold_marks, refuse_attempt, refuse_quarantined
from ftpipeline.ledger.refusals import appending
from ftpipeline.ledger.rows import JobHead
from ftpipeline.ledger.verifying import VerifyingReader
from ftpipeline.store.database import Database
from ftpipeline.store.leases import Lease, Leases, fence
from ftpipeline.store.quarantine import refuse_marked

_OWN_VERB = {Kind.JOB_OPENED: "open_job", Kind.CHECKPOINT_CONSUMED: "consume", Kind.JOB_CLOSED: "close"}


@dataclass(frozen=True)
class Consumed:
    """A checkpoint that a job may read now.

    Attributes:
        event: the event that says so, written already.
        tree: the checkpoint.
    """

    event: Event
    tree: Digest


class JobWriter:
    """The one writer of a job, until its lease is lost or given back.

    Laws: what a call writes is there whole and durably when it returns, or not at all; nothing is written under a lease
    that is not held any more; the event of a consumption stands before the bytes are handed out.
    """

    def __init__(self, ledger: VerifyingReader, database: Database, leases: Leases, lease: Lease, job_id: str) -> None:
        """Write under `lease`; `Ledger.open_job` and `Ledger.seize` are what callers want."""
        self.lease = lease
        self.job_id = job_id
        self._ledger = ledger
        self._database = database
        self._leases = leases
        self._turn = threading.RLock()
        self._place: tuple[int, int, Digest] | None = None

    @property
    def head(self) -> JobHead:
        """Where the job stands.

        Raises:
            UnknownNameError: it never opened.
        """
        return self._ledger.job(self.job_id)

    @property
    def attempt(self) -> int:
        """The attempt that is written."""
        return self.head.attempt

    def append(self, drafts: Sequence[Draft]) -> list[Event]:
        """Write what happened, all of it in one transaction.

        Returns:
            The events, in the order of `drafts`.

        Raises:
            LeaseLostError: the lease is another one's; nothing was written.
            ChainError: somebody else has continued the chain; nothing was written.
            LedgerError: the database cannot be written.
            QuarantinedError: a consumed artifact is under quarantine; nothing was written.
            CanonicalFormError: a draft holds what JSON lacks; nothing was written.
            InputError: a draft is of a kind that has a verb of its own.
        """
        for draft in drafts:
            if draft.kind in _OWN_VERB:
                raise InputError(f"a {draft.kind} event is not appended by itself; use {_OWN_VERB[draft.kind]}")
        return self._append(drafts)

    def open(self, draft: Draft) -> Event:
        """Begin the next attempt; `Ledger.open_job` checks what must be checked before.

        Raises:
            QuarantinedError: the attempt, or the checkpoint it resumes from, is under quarantine.
        """
        return self._append([draft])[0]

    def consume(
        self,
        producer: str,
        step: int,
        use: Use,
        at_step: int,
        attempt: int | None = None,
        despite: Collection[Digest] = (),
    ) -> Consumed:
        """Write that the job reads a checkpoint, which is what allows it to.

        Args:
            producer: the job that saved it.
            step: the step that it was saved at.
            use: what for.
            at_step: step of this job at which it reads.
            attempt: of the producer; None for the newest that saved a checkpoint at that step.
            despite: receipts whose marks bar the checkpoint; a replay, and no other job, reads it all the same, and the
                event names them.

        Raises:
            UnknownNameError: there is no such job or checkpoint, or its bytes are not kept any more.
            QuarantinedError: the checkpoint or its attempt is under quarantine; nothing was written.
            ChainError: the producer's chain does not verify; nothing was written.
            LeaseLostError: the lease is another one's; nothing was written.
            LedgerError: the ledger cannot be read or written.
            InputError: marks are to be passed over for a job that is no replay.
        """
        saved = self._ledger.checkpoint(producer, step, attempt)
        payload = {
            "producer": producer,
            "producer_attempt": saved.attempt,
            "producer_step": saved.step,
            "producer_event": saved.digest,
            "tree": saved.payload["tree"],
            "use": str(Use(use)),
            "at_step": at_step,
            **({"despite": sorted(despite)} if despite else {}),
        }
        event = self._append([Draft(Kind.CHECKPOINT_CONSUMED, at_step, self.head.epoch, payload)])[0]
        return Consumed(event, Digest(saved.payload["tree"]))

    def close(self, reason: CloseReason, output: Digest | None = None, error: str | None = None) -> Event:
        """Write that the attempt ended, and give the lease back.

        Args:
            reason: why it ended.
            output: tree of the trained adapter, if there is one.
            error: what went wrong, in words.

        Raises:
            LeaseLostError: the lease is another one's; nothing was written.
            ChainError: somebody else has continued the chain; nothing was written.
            LedgerError: the database cannot be written.
        """
        head = self.head
        payload = {"reason": str(CloseReason(reason)), "output": output, "error": error}
        event = self._append([Draft(Kind.JOB_CLOSED, head.step, head.epoch, payload)])[0]
        self.release()
        return event

    def renew(self) -> None:
        """Show that the writer is alive.

        Raises:
            LeaseLostError: another one has taken the lease.
        """
        self._leases.renew(self.lease)

    def release(self) -> None:
        """Give the lease back without closing the job."""
        self._leases.release(self.lease)

    def _append(self, drafts: Sequence[Draft]) -> list[Event]:
        if not drafts:
            return []
        with self._turn:
            events = self._follow(drafts)
            signed = self._ledger.sign([event for event in events if event.kind is Kind.CHECKPOINT_SAVED])
            self._place = None  # not known, unless all goes well
            with self._transaction() as connection:
                _refuse(connection, events)
                rows.insert(connection, events, self.lease.generation)
                signed_heads.insert(connection, signed)
            self._place = (events[-1].attempt, events[-1].seq, events[-1].digest)
        return events

    def _follow(self, drafts: Sequence[Draft]) -> list[Event]:
        """Return the drafts as the next events; only the holder of the lease writes, so the place is remembered."""
        if self._place is None:
            head = self._ledger.find(self.job_id)
            self._place = None if head is None else (head.attempt, head.seq, head.digest)
        attempt, place = (0, None) if self._place is None else (self._place[0], self._place[1:])
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        return next_events(self.job_id, attempt, place, drafts, time)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with appending(self.job_id), self._database.write() as connection:
            fence(connection, self.lease)
            yield connection


def _refuse(connection: Connection, events: Sequence[Event]) -> None:
    """Refuse events by which something under quarantine would be used, and hold the marks until the commit.

    A replay may use it, and therefore save nothing.
    """
    for event in events:
        said = event.payload
        if event.kind is Kind.CHECKPOINT_CONSUMED:
            despite = said.get("despite") or ()
            if despite and not _is_replay(connection, event.job_id):
                raise InputError(f"job {event.job_id} replays no job, so quarantine holds for it; name no marks")
            refuse_quarantined(connection, said["tree"], said["producer"], said["producer_attempt"], despite)
        elif event.kind is Kind.CHECKPOINT_SAVED and _is_replay(connection, event.job_id):
            raise InputError(f"job {event.job_id} replays another; what it trains is not kept")
        elif event.kind is Kind.ARTIFACT_CONSUMED:
            hold_marks(connection)
            refuse_marked(connection, said["tree"])
        elif event.kind is Kind.JOB_OPENED:
            refuse_attempt(connection, event.job_id, event.attempt)
            if (resumed := said["resumed_from"]) is not None:
                refuse_quarantined(connection, resumed["tree"], event.job_id, resumed["attempt"])


def _is_replay(connection: Connection, job_id: str) -> bool:
    head = rows.find_head(connection, job_id)
    return head is not None and head.is_replay
