"""The journal of a replay: a job of its own that begins at another job's checkpoint and keeps nothing that it trains.

A replay as recorded must read what is under quarantine, or nothing would be reproduced. The exception is explicit: the
event of each such consumption names the receipts whose marks it passes over, the ledger allows it to a job that opened
as a replay and to no other, and in return it takes no checkpoint from such a job. So nothing that a replay made of a
tainted checkpoint can be consumed, resumed, registered or served: there is nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ftpipeline.backends import checkpoint
from ftpipeline.backends.outcome import Record
from ftpipeline.cycle.jobs import TrainingJob
from ftpipeline.cycle.journal import LedgerJournal
from ftpipeline.digest import Digest
from ftpipeline.ledger.events import Event, Use
from ftpipeline.ledger.writer import Consumed
from ftpipeline.records import Facts


@dataclass(frozen=True)
class Source:
    """A checkpoint of a job.

    Attributes:
        job_id: the job that saved it.
        attempt: the attempt that did.
        step: at which step.
        tree: its digest.
        despite: receipts whose marks on it are passed over.
    """

    job_id: str
    attempt: int
    step: int
    tree: Digest
    despite: tuple[Digest, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON."""
        return {**asdict(self), "despite": list(self.despite)}


@dataclass(frozen=True, kw_only=True)
class ReplayJob(TrainingJob):
    """What the ledger is told of a replay when it opens.

    Attributes:
        replay_of: the job that is replayed, the incident, the arm and the seed.
        start: the checkpoint that it begins at; None for the beginning.
        sources: the checkpoints of other jobs that it may read, by job and step.
    """

    replay_of: Mapping[str, Any]
    start: Source | None
    sources: Mapping[tuple[str, int], Source]

    def opening(self, resumed_from: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the payload of the event that begins an attempt."""
        return {**super().opening(resumed_from), "replay_of": dict(self.replay_of)}


class ReplayJournal(LedgerJournal):
    """Keeps one attempt of a replay, which always begins where the replay does."""

    _job: ReplayJob

    def checkpoint(self, record: Record, folder: Path) -> None:
        """Look at a checkpoint and keep nothing of it.

        Raises:
            CheckpointError: it is not complete.
        """
        checkpoint.verify(folder, self._job.params)
        self._flush()

    def completed(self, output: Digest | None, facts: Facts) -> None:
        """Close the attempt; what it made are measurements and no adapter, so the event names no output."""
        super().completed(None, facts)

    def _beginnings(self) -> Iterable[None]:
        return (None,)

    def _begin(self, saved: Event | None, place: Path) -> Path | None:
        """Write what the replay reads, the checkpoint that it starts from too, and only then hand it out."""
        super()._begin(None, place)
        start = self._job.start
        if start is None:
            return None
        consumed = self._consume(start, Use.RESUME, start.step)
        self._store.trees.checkout(consumed.tree, place)
        return place

    def _read(self, record: Record) -> Consumed:
        source = self._job.sources[record["job"], record["step"]]
        return self._consume(source, Use(record["use"]), record["at_step"])

    def _consume(self, source: Source, use: Use, at_step: int) -> Consumed:
        return self._standing().consume(source.job_id, source.step, use, at_step, source.attempt, source.despite)
