"""The ledger of training jobs."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from ftpipeline.errors import LeaseLostError, UnknownNameError
from ftpipeline.ledger.events import Draft, Event, Kind, check_job_id
from ftpipeline.ledger.verifying import Keys, VerifyingReader
from ftpipeline.ledger.writer import JobWriter
from ftpipeline.receipts import SigningKey
from ftpipeline.store.database import Database
from ftpipeline.store.leases import Leases
from ftpipeline.store.opened import Store
from ftpipeline.store.trees import Trees


class Ledger(VerifyingReader):
    """Events of all jobs in one database; each job has one writer at a time, the holder of its lease."""

    def __init__(self, database: Database, trees: Trees, leases: Leases, keys: Keys | None = None) -> None:
        """Keep events in `database`.

        Args:
            database: holds the events.
            trees: hold the checkpoints.
            leases: say who may write; the same object must be asked again to find out that a holder died.
            keys: gives the key that heads are signed with; None to sign none.
        """
        super().__init__(database, trees, keys)
        self._leases = leases

    def open_job(self, job_id: str, payload: Mapping[str, Any], holder: str, ttl: float) -> JobWriter:
        """Take the job's lease and begin its next attempt.

        Args:
            job_id: the job.
            payload: of the `job_opened` event; `holder` is filled in.
            holder: who writes; no two processes have one name.
            ttl: seconds without a renewal after which others may take the job.

        Raises:
            LeaseLostError: another one has the job and has not been seen dead yet; ask again after its time to live.
            ChainError: the job's chain does not verify.
            QuarantinedError: the attempt, or the checkpoint that it resumes from, is under quarantine.
            UnknownNameError: the job saved no such checkpoint to resume from.
            LedgerError: the ledger cannot be read or written.
            InputError: the id cannot be one, or the payload lacks a field.
        """
        check_job_id(job_id)
        lease = self._leases.acquire(lease_name(job_id), holder, ttl)
        if lease is None:
            raise LeaseLostError(f"job {job_id} is trained by another process; wait for its end, or stop it")
        writer = JobWriter(self, self._database, self._leases, lease, job_id)
        try:
            resumed = self._resumed(job_id, payload.get("resumed_from"))
            step, epoch = (0, 0.0) if resumed is None else (resumed.step, resumed.epoch)
            writer.open(Draft(Kind.JOB_OPENED, step, epoch, {**payload, "holder": holder}))
        except BaseException:
            writer.release()
            raise
        return writer

    def take(self, job_id: str, holder: str, ttl: float) -> JobWriter:
        """Take the lease of a job that nobody trains, to write into its chain.

        Raises:
            UnknownNameError: the job never opened.
            LeaseLostError: somebody has the job.
            ChainError: the job's chain does not verify.
        """
        self.verify_new(self.job(job_id).job_id)
        lease = self._leases.acquire(lease_name(job_id), holder, ttl)
        if lease is None:
            raise LeaseLostError(f"job {job_id} is held by another process; wait for its end, then do it again")
        return JobWriter(self, self._database, self._leases, lease, job_id)

    def seize(self, job_id: str, holder: str, ttl: float) -> JobWriter:
        """Take the job whoever has it, so that the next append of its holder is refused.

        Raises:
            UnknownNameError: the job never opened.
        """
        self.job(job_id)
        lease = self._leases.seize(lease_name(job_id), holder, ttl)
        return JobWriter(self, self._database, self._leases, lease, job_id)

    def _resumed(self, job_id: str, checkpoint: Mapping[str, Any] | None) -> Event | None:
        """Return the event of the checkpoint that an attempt resumes from, after verifying the chain of the job."""
        if self.find(job_id) is not None:
            self.verify_new(job_id)
        if checkpoint is None:
            return None
        saved = self.checkpoint(job_id, checkpoint["step"], checkpoint["attempt"])
        if saved.payload["tree"] != checkpoint["tree"]:
            raise UnknownNameError(
                f"job {job_id} saved {saved.payload['tree']} at step {saved.step}, not {checkpoint['tree']}; "
                "resume from what the ledger names"
            )
        return saved


def lease_name(job_id: str) -> str:
    """Return the name of the lease that a job is written under."""
    return f"job:{job_id}"


def ledger_of(store: Store) -> Ledger:
    """Return the ledger of an open store; its heads are signed with the home's key."""
    return Ledger(store.database, store.trees, store.leases, cache(lambda: SigningKey.of_home(store.home.root)))
