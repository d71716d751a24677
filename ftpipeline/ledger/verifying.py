"""Reading the ledger for those who must not be deceived: whether the chains hold, and which checkpoints may be read."""

from collections.abc import Callable, Iterable
from functools import cached_property

from ftpipeline.errors import ChainError, UnknownNameError
from ftpipeline.ledger import rows, signed_heads
from ftpipeline.ledger.chain import FORKED, MISSING, UNVERIFIABLE, Head, check_chain, is_known, unknown_schema
from ftpipeline.ledger.events import Event
from ftpipeline.ledger.reader import LedgerReader
from ftpipeline.ledger.refusals import reading
from ftpipeline.ledger.rows import JobHead
from ftpipeline.ledger.signed_heads import SignedHead
from ftpipeline.receipts import SigningKey
from ftpipeline.store.database import Database
from ftpipeline.store.trees import Trees

Keys = Callable[[], SigningKey]
"""Gives the key that signs heads, when one is needed first."""


class VerifyingReader(LedgerReader):
    """The ledger, with the key that its heads are signed with and the trees that it speaks of."""

    def __init__(self, database: Database, trees: Trees, keys: Keys | None = None) -> None:
        """Read what is in `database`.

        Args:
            database: holds the events.
            trees: hold the checkpoints.
            keys: gives the key that heads are signed with; None where none are.
        """
        super().__init__(database)
        self._trees = trees
        self._keys = keys
        self._trusted: dict[str, Head] = {}

    @cached_property
    def _key(self) -> SigningKey | None:
        return None if self._keys is None else self._keys()

    def verify(self, job_id: str, trusted: Head | None = None) -> Head:
        """Check a job's chain: every event, the job's head, and every signed head.

        Args:
            job_id: the job.
            trusted: a place that was verified before, to check only what came since; None to check everything.

        Returns:
            The place of the newest event, to be trusted the next time.

        Raises:
            ChainError: the chain is missing, forked, cut off or altered, or holds events of a newer schema.
            LedgerError: the ledger cannot be read.
        """
        after = -1 if trusted is None else trusted.seq - 1  # the trusted event must still be there
        with reading(job_id), self._database.read() as connection:
            head = rows.find_head(connection, job_id)
            events = rows.of_job(connection, job_id, after, None, None)
            signed = signed_heads.of_job(connection, job_id, after)
        last = check_chain(job_id, events, trusted)
        digests = {event.seq: event.digest for event in events}
        for envelope in signed:
            if self._key is not None:
                signed_heads.check_signed(envelope, digests, self._key.public)
        _check_head(job_id, head, last)
        if unknown := [event for event in events if not is_known(event)]:
            raise ChainError(job_id, UNVERIFIABLE, unknown[0].seq, str(unknown_schema(job_id, unknown)))
        return last

    def verify_new(self, job_id: str) -> Head:
        """Check what came to a job's chain since this reader last did; the first time, everything."""
        self._trusted[job_id] = self.verify(job_id, self._trusted.get(job_id))
        return self._trusted[job_id]

    def sign(self, events: Iterable[Event]) -> list[SignedHead]:
        """Return the signed heads at the events; none where there is no key."""
        chosen = list(events)
        if not chosen or self._key is None:
            return []
        return [SignedHead.of(event, self._key) for event in chosen]

    def signed_heads(self, job_id: str) -> list[SignedHead]:
        """Return a job's signed heads, oldest first."""
        with reading(job_id), self._database.read() as connection:
            return signed_heads.of_job(connection, job_id)

    def checkpoint(self, job_id: str, step: int, attempt: int | None = None) -> Event:
        """Return the `checkpoint_saved` event of a checkpoint that may be read, as far as the ledger knows.

        Args:
            job_id: the job that saved it.
            step: the step that it was saved at.
            attempt: which; None for the newest that saved one at that step.

        Raises:
            UnknownNameError: there is no such job or checkpoint, or its bytes are not kept any more.
            ChainError: the job's chain does not verify.
        """
        self.job(job_id)
        self.verify_new(job_id)
        found = [event for event in self.checkpoints(job_id) if event.step == step and attempt in (None, event.attempt)]
        if not found:
            which = "" if attempt is None else f" in attempt {attempt}"
            raise UnknownNameError(f"job {job_id} saved no checkpoint at step {step}{which}; consume one that it saved")
        saved = max(found, key=lambda event: (event.attempt, event.seq))
        if not self._trees.is_present(saved.payload["tree"]):
            raise UnknownNameError(
                f"checkpoint {step} of job {job_id} is not kept any more; consume a newer one, or keep more of them"
            )
        return saved


def _check_head(job_id: str, head: JobHead | None, last: Head) -> None:
    if head is None:
        raise ChainError(job_id, MISSING, None, "has events, and no head")
    if head.seq > last.seq:
        raise ChainError(job_id, MISSING, last.seq + 1, f"is not there, and the job's head is {head.seq}")
    if head.head != last:
        raise ChainError(job_id, FORKED, last.seq, f"is {last.digest}, and the job's head is {head.digest}")
