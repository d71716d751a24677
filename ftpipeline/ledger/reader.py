"""Reading the ledger: where jobs stand, what happened, and who consumed what."""

from collections.abc import Collection
from typing import Any

from ftpipeline.digest import Digest
from ftpipeline.errors import UnknownNameError
from ftpipeline.ledger import rows
from ftpipeline.ledger.chain import (
    StoredEvent,
    known_events,
)
from ftpipeline.ledger.cuts import Cut, read_cut
from ftpipeline.ledger.events import Event, Kind
from ftpipeline.ledger.manifest import consumption_ledger, manifest
from ftpipeline.ledger.refusals import reading
from ftpipeline.ledger.roots import retained_by_job
from ftpipeline.ledger.rows import JobHead
from ftpipeline.store.database import Database

CONSUMPTIONS = (Kind.CHECKPOINT_CONSUMED, Kind.ARTIFACT_CONSUMED)
_ALL_JOBS = "all jobs"


class LedgerReader:
    """The ledger for those who only look."""

    def __init__(self, database: Database) -> None:
        """Read what is in `database`."""
        self._database = database

    def jobs(self, open_only: bool = False) -> list[JobHead]:
        """Return where each job stands, by job id; the cost does not depend on how many events there are."""
        with reading(_ALL_JOBS), self._database.read() as connection:
            return rows.heads(connection, open_only=open_only)

    def named_jobs(self) -> list[str]:
        """Return every job that a head, an event, a signed head or a consumer speaks of, also one that is gone."""
        with reading(_ALL_JOBS), self._database.read() as connection:
            return rows.named_jobs(connection)

    def find(self, job_id: str) -> JobHead | None:
        """Return where a job stands; None when it never opened."""
        with reading(job_id), self._database.read() as connection:
            return rows.find_head(connection, job_id)

    def job(self, job_id: str) -> JobHead:
        """Return where a job stands.

        Raises:
            UnknownNameError: it never opened.
        """
        found = self.find(job_id)
        if found is None:
            raise _unknown_job(job_id)
        return found

    def events(
        self, job_id: str, after_seq: int = -1, limit: int | None = None, kinds: Collection[Kind] | None = None
    ) -> list[Event]:
        """Return a job's events after a place, oldest first.

        Args:
            job_id: the job.
            after_seq: seq of the last event that is known already.
            limit: how many at most.
            kinds: which; None for all.

        Raises:
            LedgerError: one is of a newer schema; the error says how many are.
            ChainError: one is not readable.
        """
        with reading(job_id), self._database.read() as connection:
            return known_events(job_id, rows.of_job(connection, job_id, after_seq, limit, kinds))

    def stored(self, job_id: str, after_seq: int = -1) -> list[StoredEvent]:
        """Return a job's events as they are written, also those of a newer schema, oldest first."""
        with reading(job_id), self._database.read() as connection:
            return rows.of_job(connection, job_id, after_seq, None, None)

    def consumptions(self, job_ids: Collection[str] | None = None) -> list[Event]:
        """Return every consumption of a checkpoint or artifact, by job and place.

        Args:
            job_ids: of which jobs; None for all.

        Raises:
            LedgerError: an event is of a newer schema.
        """
        return self._of_kinds(CONSUMPTIONS, job_ids)

    def checkpoints(self, job_id: str) -> list[Event]:
        """Return the `checkpoint_saved` events of a job, oldest first."""
        return self._of_kinds([Kind.CHECKPOINT_SAVED], [job_id])

    def maker(self, tree: Digest) -> str | None:
        """Return the job that made a tree as its output or a checkpoint; None if no job did."""
        kinds = [Kind.JOB_CLOSED, Kind.CHECKPOINT_SAVED]
        with reading(_ALL_JOBS), self._database.read() as connection:
            mentions = rows.of_kinds(connection, kinds, mention=f'"{tree}"')
        for event in known_events(_ALL_JOBS, mentions):
            if tree in (event.payload.get("output"), event.payload.get("tree")):
                return event.job_id
        return None

    def manifest(self, cut: Cut | None = None) -> dict[str, Any]:
        """Return the `concurrent_jobs_manifest` at a cut.

        Args:
            cut: job to the digest of one of its events; None for where every job stands now.

        Raises:
            UnknownNameError: a job never opened.
            ChainError: a job has no such event.
            LedgerError: an event is of a newer schema.
        """
        return manifest(self._chains(cut))

    def consumption_ledger(self, cut: Cut | None = None) -> dict[str, Any]:
        """Return the `checkpoint_consumption_ledger` at a cut; arguments and errors are those of `manifest`."""
        return consumption_ledger(self._chains(cut))

    def retained(self, job_id: str) -> list[Event]:
        """Return the `checkpoint_saved` events of the checkpoints of a job that are kept, oldest first."""
        with reading(job_id), self._database.read() as connection:
            kept = retained_by_job(connection, [job_id])
        return kept.get(job_id, [])

    def _chains(self, cut: Cut | None) -> dict[str, list[Event]]:
        with reading(_ALL_JOBS), self._database.read() as connection:
            stored = read_cut(connection, cut)
        return {job_id: known_events(job_id, events) for job_id, events in stored.items()}

    def _of_kinds(self, kinds: Collection[Kind], job_ids: Collection[str] | None) -> list[Event]:
        with reading(_ALL_JOBS), self._database.read() as connection:
            return known_events(_ALL_JOBS, rows.of_kinds(connection, kinds, job_ids))


def _unknown_job(job_id: str) -> UnknownNameError:
    return UnknownNameError(f"job {job_id} is not in the ledger; see 'ftpipeline ledger jobs'")
