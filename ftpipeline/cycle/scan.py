"""Looks at what is new of every job, and tells which of them diverge.

Law: what a scan says of a job depends on the job's chain alone, not on how many scans it took or on when they were. A
scan does a bounded amount of work; what is left waits for the next one, the job that has waited longest first. A replay
may diverge on purpose: whoever replays judges it, and a scan passes it over.
Whatever cannot be read is counted and reported; it neither ends the scan nor speaks for the job.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ftpipeline.cycle.detector_states import NEVER, DetectorStates, Looked, restarted
from ftpipeline.cycle.training_points import Unreadable, look
from ftpipeline.errors import ChainError, FtpipelineError, InputError, LedgerError
from ftpipeline.guard.verdicts import Detection, Stage
from ftpipeline.ledger.chain import StoredEvent
from ftpipeline.ledger.events import Event
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.ledger.rows import JobHead


@dataclass(frozen=True)
class Limits:
    """What one scan does at most.

    Attributes:
        jobs: jobs that are looked at.
        events: events that are read, of all jobs together.
        job_events: events that are read of one job, so that a long history does not keep the others waiting.
    """

    jobs: int = 1000
    events: int = 2000
    job_events: int = 400


NO_LIMITS = Limits(jobs=10**9, events=10**9, job_events=10**9)
DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class JobVerdict:
    """What is known of one job.

    Attributes:
        job_id: the job.
        detection: the verdict on its current attempt.
        confirmed: verdicts on attempts that this scan found to have diverged, this one or earlier ones.
        unusable: events and points of the attempt that could not be used.
        reasons: why, the first few.
        waiting: events that are left for the next scan.
    """

    job_id: str
    detection: Detection
    confirmed: tuple[Detection, ...] = ()
    unusable: int = 0
    reasons: tuple[str, ...] = ()
    waiting: int = 0


@dataclass(frozen=True)
class Scan:
    """What one scan saw.

    Attributes:
        verdicts: one for each job that was looked at, by job id.
        unread: jobs whose events could not be read at all, with the reason.
        waiting: jobs that are left for the next scan, wholly or in part.
    """

    verdicts: tuple[JobVerdict, ...]
    unread: tuple[tuple[str, str], ...]
    waiting: int

    @property
    def is_complete(self) -> bool:
        """Whether every job was looked at up to its last event."""
        return not self.waiting and not self.unread


Verdicts = Sequence[JobVerdict]


def untold(verdicts: Verdicts) -> None:
    """Tell nobody."""


def scan(
    ledger: Ledger,
    states: DetectorStates,
    limits: Limits = DEFAULT_LIMITS,
    report: Callable[[Verdicts], None] = untold,
) -> Scan:
    """Look at what is new of the jobs, and remember how far that was.

    Args:
        ledger: holds the events.
        states: hold what is remembered of each job.
        limits: how much is done at most.
        report: told of the verdicts before they are remembered: who dies in between is told of them again.

    Raises:
        LedgerError: the ledger cannot be read.
        DatabaseError: the database cannot be read or written.
    """
    began = datetime.now(UTC)
    moved = _moved([head for head in ledger.jobs() if not head.is_replay], states)
    verdicts, unread, looked, left = [], [], [], limits.events
    for head in moved[: limits.jobs]:
        if left <= 0:
            break
        try:
            before = _before(states, head)
            verdict, after = _look_at(ledger, head, before, min(left, limits.job_events), began)
        except FtpipelineError as error:
            unread.append((head.job_id, str(error)))
            continue
        verdicts.append(verdict)
        looked.append(after)
        left -= after.seq - before.seq
    done = sum(not verdict.waiting for verdict in verdicts)
    found = Scan(_sorted(verdicts), tuple(unread), len(moved) - done - len(unread))
    report(found.verdicts)
    states.put(looked)
    if found.is_complete:
        states.finished(began)
    return found


def _moved(heads: Iterable[JobHead], states: DetectorStates) -> list[JobHead]:
    """Return the jobs that have events which were not looked at, the one that has waited longest first."""
    places = states.places()
    moved = [head for head in heads if places.get(head.job_id, (NEVER, ""))[0] != head.seq]
    return sorted(moved, key=lambda head: (places.get(head.job_id, (NEVER, ""))[1], head.job_id))


def _before(states: DetectorStates, head: JobHead) -> Looked:
    """Return how far a job was looked at; one that another version remembers is looked at from the start."""
    try:
        known = states.of(head.job_id)
    except InputError:
        known = None
    return restarted(head.job_id, states.envelope(head.opened["family"])) if known is None else known


def _look_at(ledger: Ledger, head: JobHead, before: Looked, limit: int, now: datetime) -> tuple[JobVerdict, Looked]:
    events = _read(ledger, head.job_id, before.seq, limit)
    memory, found = look(before.memory, events)
    last = events[-1]
    verdict = JobVerdict(
        job_id=head.job_id,
        detection=memory.verdict(),
        confirmed=tuple(detection for detection in found if detection.stage is Stage.CONFIRMED),
        unusable=memory.unusable,
        reasons=memory.reasons,
        waiting=max(0, head.seq - last.seq),
    )
    after = replace(
        before, attempt=last.attempt, seq=last.seq, stage=verdict.detection.stage, looked=now, memory=memory
    )
    return verdict, after


def _read(ledger: Ledger, job_id: str, after: int, limit: int) -> Sequence[Event | Unreadable]:
    """Return a job's next events; where some are of a newer schema or torn, those that are not, and what is wrong."""
    try:
        return ledger.events(job_id, after_seq=after, limit=limit)
    except (LedgerError, ChainError):
        return [_readable(stored) for stored in ledger.stored(job_id, after_seq=after)[:limit]]


def _readable(stored: StoredEvent) -> Event | Unreadable:
    try:
        return stored.event()
    except (LedgerError, ChainError) as error:
        return Unreadable(stored.attempt, stored.seq, str(error))


def _sorted(verdicts: Sequence[JobVerdict]) -> tuple[JobVerdict, ...]:
    return tuple(sorted(verdicts, key=lambda verdict: verdict.job_id))
