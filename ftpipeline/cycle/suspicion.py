"""Which divergence a person means: the one on record for a job, the one that the detector sees, or the one stated."""

from dataclasses import dataclass

from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.incident_opening import open_incident
from ftpipeline.cycle.training_points import Memory, look
from ftpipeline.cycle.watch import signer_of
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError
from ftpipeline.guard.lineage import Incident as Divergence
from ftpipeline.guard.lineage import Position
from ftpipeline.guard.verdicts import Detection, Stage
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.store.opened import Store


@dataclass(frozen=True)
class Window:
    """When a job diverged, in steps of its newest attempt.

    Attributes:
        last_good: last step that is not in doubt; None if there is none.
        onset: first step at which the disturbance may be seen.
    """

    last_good: int | None
    onset: int

    @classmethod
    def parse(cls, text: str) -> "Window":
        """Return the window that `LAST_GOOD:ONSET` names; without LAST_GOOD, everything before the onset is in doubt.

        Raises:
            InputError: it names none.
        """
        good, colon, onset = text.partition(":")
        numbers = [part for part in (good, onset) if part]
        if not colon or not onset or not all(part.isdecimal() for part in numbers):
            raise InputError(f"window {text!r} is not LAST_GOOD:ONSET, such as 140:141")
        return cls(int(good) if good else None, int(onset))


@dataclass(frozen=True)
class Suspicion:
    """A divergence that may be traced.

    Attributes:
        job_id: the job.
        detection: what is said of its attempt.
        incident: the one on record, if there is one.
    """

    job_id: str
    detection: Detection
    incident: Incident | None = None

    @property
    def divergence(self) -> Divergence:
        """The divergence as a trace takes it."""
        if self.incident is not None:
            return self.incident.traced
        attempt, good = self.detection.attempt, self.detection.last_good_step
        onset = Position(attempt, self.detection.onset_step or 0)
        return Divergence(self.job_id, onset, None if good is None else Position(attempt, good))

    @property
    def marked_by(self) -> Digest | None:
        """Receipt of the incident on record."""
        return None if self.incident is None else self.incident.divergence


def suspicion_of(store: Store, ledger: Ledger, job_id: str, window: Window | None = None) -> Suspicion:
    """Return the divergence of a job: the stated one, else the newest on record, else what the detector sees.

    Raises:
        UnknownNameError: there is no such job.
        InputError: none is stated, and the job is not known to have diverged.
        LedgerError: the job's events cannot be read.
    """
    attempt = ledger.job(job_id).attempt
    if window is not None:
        detection = Detection(Stage.CONFIRMED, (), window.last_good, window.onset, window.onset, attempt, 0, 0)
        return Suspicion(job_id, detection)
    memory, found = look(Memory(), ledger.events(job_id))
    known = [incident for incident in Incidents(store.database).all() if incident.job_id == job_id]
    if known:
        return Suspicion(job_id, memory.verdict(), known[-1])
    confirmed = [detection for detection in found if detection.stage is Stage.CONFIRMED]
    if not confirmed:
        stage = memory.verdict().stage
        raise InputError(
            f"job {job_id} is {stage.value}, not diverged; give --window LAST_GOOD:ONSET to trace it all the same"
        )
    return Suspicion(job_id, confirmed[-1])


def on_record(store: Store, ledger: Ledger, suspicion: Suspicion, declared_by: str | None) -> Incident:
    """Return the incident of a suspicion, signed and opened unless it is on record already."""
    if suspicion.incident is not None:
        return suspicion.incident
    incidents = Incidents(store.database)
    return open_incident(ledger, incidents, signer_of(store), suspicion.job_id, suspicion.detection, declared_by)
