"""The journal of a training job: every word of its worker becomes an event of the ledger, under the job's lease."""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

from ftpipeline.backends import checkpoint
from ftpipeline.backends.outcome import JobJournal, Record
from ftpipeline.cycle.concurrency import Company, require_safe_company
from ftpipeline.cycle.jobs import TrainingJob, consumed_inputs
from ftpipeline.cycle.resume import resumable
from ftpipeline.digest import Digest
from ftpipeline.engine.flight import kept_alive
from ftpipeline.engine.holder import is_gone, this_process
from ftpipeline.errors import (
    ChainError,
    JobHaltedError,
    LeaseLostError,
    QuarantinedError,
    UnknownNameError,
    WorkerInterruptedError,
)
from ftpipeline.ledger.events import CloseReason, Draft, Event, Kind, Use
from ftpipeline.ledger.ledger import lease_name, ledger_of
from ftpipeline.ledger.writer import Consumed, JobWriter
from ftpipeline.records import Facts
from ftpipeline.store.opened import Store

_TTL_SECONDS = 10.0
_POLL_SECONDS = 0.5
_PATIENCE_SECONDS = 4 * _TTL_SECONDS
_BATCH_POINTS, _BATCH_SECONDS = 50, 1.0
_PLACE = ("step", "epoch")


class LedgerJournal(JobJournal):
    """Keeps one attempt of a job; a context that closes the attempt with the reason it ended for.

    Nothing is opened, and no fingerprint taken, before a worker is started: a reused result has no attempt.
    """

    def __init__(self, store: Store, job: Callable[[], TrainingJob]) -> None:
        """Keep the journal of a job.

        Args:
            store: where checkpoints go.
            job: tells the job when it is needed first.
        """
        self._store = store
        self._make_job = job
        self._ledger = ledger_of(store)
        self._writer: JobWriter | None = None
        self._beats = ExitStack()
        self._points: list[Record] = []
        self._written = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._beats:
            if self._writer is None or error is None:
                return
            with suppress(LeaseLostError, ChainError):  # what ended it; the job is somebody else's, who closes it
                self._keep(self._batch())
                self._writer.close(_reason(error), error=str(error) or type(error).__name__)

    def completed(self, output: Digest | None, facts: Facts) -> None:
        """Close the attempt with what it made; called before the result is recorded."""
        writer = self._standing()
        self._flush()
        writer.close(CloseReason.COMPLETED, output)
        self._writer = None

    def open(self, place: Path) -> Path | None:
        """Begin the next attempt, from the newest checkpoint that is complete, whole and not under quarantine.

        Raises:
            JobHaltedError: the attempt is under quarantine, the job's chain does not verify, or others train and the
                record of them cannot be trusted.
            LeaseLostError: another living process trains the job.
        """
        self._job = self._make_job()
        require_safe_company(self._store, self._ledger, self._job.job_id)
        self._company = Company(self._ledger, self._job.job_id)
        self.checkpoint_steps = self._job.checkpoints.steps
        for saved in self._beginnings():
            try:
                self._writer = self._opened(saved)
            except (QuarantinedError, UnknownNameError) as error:
                if saved is None:
                    raise JobHaltedError(f"job {self._job.job_id} may not train: {error}") from error
                continue
            except ChainError as error:
                raise JobHaltedError(f"job {self._job.job_id} may not train: {error}") from error
            self._beats.enter_context(kept_alive(self._store.leases, self._writer.lease))
            return self._begin(saved, place)
        return None

    def metric(self, record: Record) -> None:
        """Keep a step's metrics; at most 50 steps or a second of them are written together."""
        self._points.append(record)
        if len(self._points) >= _BATCH_POINTS or time.monotonic() - self._written >= _BATCH_SECONDS:
            self._flush()

    def evaluation(self, record: Record) -> None:
        """Write an evaluation."""
        payload = {name: value for name, value in record.items() if name not in _PLACE}
        self._append(Draft(Kind.EVALUATION, record["step"], record["epoch"], payload))

    def checkpoint(self, record: Record, folder: Path) -> None:
        """Store a checkpoint as a tree, then write that there is one.

        Raises:
            CheckpointError: it is not complete.
        """
        checkpoint.verify(folder, self._job.params)
        tree = self._store.trees.put(folder)
        self._append(Draft(Kind.CHECKPOINT_SAVED, record["step"], record["epoch"], {"tree": tree}))

    def consume(self, record: Record, place: Path) -> Path | None:
        """Write that another job's checkpoint is read, then check it out.

        Raises:
            UnknownNameError: there is no such checkpoint, and its job is not making it.
            QuarantinedError: it is under quarantine.
        """
        self._flush()
        try:
            consumed = self._read(record)
        except UnknownNameError:
            if self._is_being_made(record["job"], record["step"]):
                return None
            raise
        folder = place / f"consumed-{record['ticket']}"
        self._store.trees.checkout(consumed.tree, folder)
        return folder

    def _beginnings(self) -> Iterable[Event | None]:
        """Return the checkpoints that an attempt may go on from, the best first; None stands for the beginning."""
        return chain(resumable(self._ledger, self._store.trees, self._job), (None,))

    def _read(self, record: Record) -> Consumed:
        return self._standing().consume(record["job"], record["step"], Use(record["use"]), record["at_step"])

    def _opened(self, saved: Event | None) -> JobWriter:
        """Open the job, waiting for a holder that died; the step key's lease, which is held, keeps living ones away."""
        resumed = None
        if saved is not None:
            resumed = {"attempt": saved.attempt, "step": saved.step, "tree": saved.payload["tree"]}
        deadline = time.monotonic() + _PATIENCE_SECONDS
        name = lease_name(self._job.job_id)
        while True:
            holder = self._store.leases.held().get(name)
            if holder is not None and is_gone(holder):
                self._store.leases.disown(name, holder)
            try:
                return self._ledger.open_job(self._job.job_id, self._job.opening(resumed), this_process(), _TTL_SECONDS)
            except LeaseLostError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_POLL_SECONDS)

    def _begin(self, saved: Event | None, place: Path) -> Path | None:
        """Write what the attempt reads, and only then hand it out."""
        step, epoch = (0, 0.0) if saved is None else (saved.step, saved.epoch)
        writer = self._standing()
        writer.append(consumed_inputs(self._job, self._ledger, self._store.results, step, epoch))
        if saved is None:
            return None
        consumed = writer.consume(self._job.job_id, saved.step, Use.RESUME, saved.step, saved.attempt)
        self._store.trees.checkout(consumed.tree, place)
        return place

    def _is_being_made(self, job_id: str, step: int) -> bool:
        head = self._ledger.find(job_id)
        holder = self._store.leases.held().get(lease_name(job_id))
        return head is not None and head.is_open and head.step < step and holder is not None and not is_gone(holder)

    def _append(self, draft: Draft) -> None:
        self._write([*self._batch(), draft])

    def _flush(self) -> None:
        self._write(self._batch())

    def _batch(self) -> list[Draft]:
        if not self._points:
            return []
        last = self._points[-1]
        return [Draft(Kind.METRICS, last["step"], last["epoch"], {"points": list(map(dict, self._points))})]

    def _write(self, drafts: list[Draft]) -> None:
        """Append events.

        Raises:
            JobHaltedError: the chain, or that of a job which trains beside, does not verify any more.
            LeaseLostError: the job is another process's.
        """
        try:
            self._keep(drafts)
        except ChainError as error:
            raise JobHaltedError(f"job {self._job.job_id} may not go on: {error}") from error
        self._company.check()

    def _keep(self, drafts: list[Draft]) -> None:
        """Append events, whatever company the job is in: the last ones are written also by a job that halts for it."""
        self._standing().append(drafts)
        self._points.clear()
        self._written = time.monotonic()

    def _standing(self) -> JobWriter:
        if self._writer is None:
            raise JobHaltedError("the job has no open attempt; start its worker through a launcher")
        return self._writer


def _reason(error: BaseException) -> CloseReason:
    """Return why an attempt ended: what is no Exception interrupts, such as Ctrl-C and an orchestrator's cancelling."""
    if isinstance(error, JobHaltedError):
        return CloseReason.HALTED
    if isinstance(error, WorkerInterruptedError) or not isinstance(error, Exception):
        return CloseReason.INTERRUPTED
    return CloseReason.FAILED
