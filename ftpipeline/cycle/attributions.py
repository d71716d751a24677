"""What is on record of replays: events in the chains of the jobs that were replayed, each naming a signed receipt.

The report of an isolation stays as it was signed; what is known better since is read from the chains.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ftpipeline.cycle.incident import Incident
from ftpipeline.errors import ChainError, LedgerError
from ftpipeline.guard.trace import Exposure
from ftpipeline.ledger.events import Event, Kind
from ftpipeline.ledger.reader import LedgerReader

ACTION = "attribution"
"""What an `isolation_action` event says is done where a job was replayed."""

Json = Mapping[str, Any]


def attributions(ledger: LedgerReader, job_id: str) -> list[Event]:
    """Return the events that say what replays of a job have shown, oldest first.

    Raises:
        ChainError: an event of the job is not readable.
        LedgerError: the ledger cannot be read.
    """
    events = ledger.events(job_id, kinds=[Kind.ISOLATION_ACTION])
    return [event for event in events if event.payload["action"] == ACTION]


def upgraded(ledger: LedgerReader, incident: Incident | None, jobs: Iterable[Json]) -> list[dict[str, Any]]:
    """Return findings on jobs, an exposure that replays have tested replaced by the cause that they speak for.

    Args:
        ledger: holds the chains.
        incident: what the findings belong to; None for a divergence that is not on record, so nothing was replayed.
        jobs: the findings; one that replays have tested also gets `replays`, k of n by arm.
    """
    return [dict(job) if incident is None else _upgraded(ledger, incident, job) for job in jobs]


def _upgraded(ledger: LedgerReader, incident: Incident, job: Json) -> dict[str, Any]:
    if job["exposure"] != Exposure.EXPOSED_UNTESTED or job["tainted_from"] is None:
        return dict(job)
    try:
        said = [event.payload for event in attributions(ledger, job["job_id"])]
    except (ChainError, LedgerError):  # it says nothing that could be trusted, so the exposure stays untested
        said = []
    known = [payload for payload in said if payload["incident"] == incident.name]
    return {**job, "exposure": known[-1]["cause"], "replays": known[-1]["outcomes"]} if known else dict(job)
