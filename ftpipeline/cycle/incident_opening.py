"""From a verdict of the detector, or of a person, to a signed incident on record."""

from datetime import UTC, datetime
from typing import Any

from ftpipeline.cycle.fleet import cut_of
from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.isolation_records import Signer, divergence_statement, incident_id
from ftpipeline.cycle.scan import Verdicts
from ftpipeline.errors import ChainError, LedgerError
from ftpipeline.guard.lineage import Position
from ftpipeline.guard.plan import Action
from ftpipeline.guard.verdicts import Detection
from ftpipeline.ledger.events import Event, Kind
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.ledger.rows import JobHead
from ftpipeline.store.results import utc_text

_COVERING = (Action.ROLLBACK, Action.QUARANTINE)


def open_incidents(ledger: Ledger, incidents: Incidents, signer: Signer, verdicts: Verdicts) -> list[Incident]:
    """Open an incident for every attempt that diverged, unless there is one or the attempt was isolated with another.

    Args:
        ledger: holds the chains.
        incidents: the known ones.
        signer: signs the receipts.
        verdicts: of a scan.

    Returns:
        The new incidents.
    """
    opened = []
    for verdict in verdicts:
        for detection in verdict.confirmed:
            name = incident_id(verdict.job_id, detection.attempt, detection.onset_step or 0)
            if incidents.find(name) is None and not is_covered(ledger, verdict.job_id, detection):
                opened.append(open_incident(ledger, incidents, signer, verdict.job_id, detection))
    return opened


def open_incident(
    ledger: Ledger,
    incidents: Incidents,
    signer: Signer,
    job_id: str,
    detection: Detection,
    declared_by: str | None = None,
) -> Incident:
    """Sign that an attempt of a job diverged, and record the incident.

    Raises:
        UnknownNameError: there is no such job.
    """
    head, onset = ledger.job(job_id), detection.onset_step or 0
    statement = divergence_statement(job_id, detection, head.digest, _cut(ledger, head), declared_by)
    return incidents.open(
        Incident(
            name=incident_id(job_id, detection.attempt, onset),
            job_id=job_id,
            attempt=detection.attempt,
            onset=onset,
            last_good=detection.last_good_step,
            opened=utc_text(datetime.now(UTC)),
            divergence=signer.put(statement),
        )
    )


def _cut(ledger: Ledger, head: JobHead) -> dict[str, Any]:
    """Return the cut of all jobs; of the diverged one alone where another chain cannot be read."""
    try:
        return cut_of(ledger, {job.job_id: job.digest for job in ledger.jobs()})
    except (LedgerError, ChainError):
        return cut_of(ledger, {head.job_id: head.digest})


def is_covered(ledger: Ledger, job_id: str, detection: Detection) -> bool:
    """Tell whether the attempt was isolated from its onset on or earlier, because of another job that diverged."""
    onset = Position(detection.attempt, detection.onset_step or 0)
    try:
        actions = ledger.events(job_id, kinds=[Kind.ISOLATION_ACTION])
    except (LedgerError, ChainError):  # nobody can say so
        return False
    return any(_covers(event, onset) for event in actions)


def _covers(isolation: Event, onset: Position) -> bool:
    since = _since(isolation)
    return since is not None and since <= onset and onset.attempt <= isolation.attempt


def _since(event: Event) -> Position | None:
    """Return from which position on an isolation made a job's work unusable; None if it did not."""
    since = event.payload.get("tainted_from")
    return Position(*since) if since is not None and event.payload["action"] in _COVERING else None
