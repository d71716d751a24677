"""What a job that an incident exposed has read of others, and which of it is in doubt."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ftpipeline import digest
from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.replay_journal import Source
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError
from ftpipeline.guard.lineage import Position
from ftpipeline.guard.trace import Exposure, JobState
from ftpipeline.ledger.events import Event, Kind, Use
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.ledger.quarantined import attempt_digest, marking
from ftpipeline.schema import Consumption
from ftpipeline.store.opened import Store

Finding = Mapping[str, Any]
"""What the report of an incident says of a job that it taints."""

Readings = Mapping[Consumption, Event]
"""What a job has read of others: as its manifest names it, and the event that says so."""


@dataclass(frozen=True)
class Suspect:
    """A checkpoint of another job that the job read, and that may have wrecked it.

    Attributes:
        declared: how the manifest names it.
        source: what was read.
        clean: the last clean checkpoint of its job; None where there is none, or where nothing is known to be wrong.
    """

    declared: Consumption
    source: Source
    clean: Source | None

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON."""
        clean = None if self.clean is None else self.clean.to_json()
        return {"use": self.declared.use, "read": self.source.to_json(), "clean": clean}


class Exposures:
    """What all isolated incidents of a home say together."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        """Read the incidents.

        Args:
            store: holds them, the marks, and the checkpoints.
            ledger: tells who read what.
        """
        self._store = store
        self._ledger = ledger
        self._newest_first = [each for each in reversed(Incidents(store.database).all()) if each.report is not None]

    def of(self, job_id: str) -> tuple[Incident, Finding]:
        """Return the newest incident that exposes a job to another one, and what it says of the job.

        Raises:
            InputError: there is none.
        """
        for incident in self._newest_first:
            finding = _finding(incident, job_id)
            if finding is not None and finding["exposure"] == Exposure.EXPOSED_UNTESTED:
                return incident, finding
        raise InputError(
            f"no isolated incident exposes job {job_id} to another one; see 'ftpipeline trace', isolate what is open"
        )

    def readings(self, job_id: str, declared: Iterable[Consumption], attempt: int) -> dict[Consumption, Event]:
        """Return what a job read up to an attempt, of what its manifest declares; the rest it never got to."""
        events = [
            event
            for event in reversed(self._ledger.consumptions([job_id]))  # a resume reads some of it once more
            if event.kind is Kind.CHECKPOINT_CONSUMED and event.attempt <= attempt
        ]
        found = {each: next((event for event in events if _is_of(each, event)), None) for each in declared}
        return {each: event for each, event in found.items() if event is not None}

    def suspects(self, incident: Incident, finding: Finding, readings: Readings) -> list[Suspect]:
        """Return what may have wrecked a job: what is known to be tainted; else, of a source, all before its onset."""
        is_source, onset = finding["state"] == JobState.SOURCE, incident.traced.onset
        early = {each: event for each, event in readings.items() if not is_source or _read_at(event) <= onset}
        tainted = {each: event for each, event in early.items() if self._taint(*_saved(event)) is not None}
        doubted = tainted or (early if is_source else {})
        return [Suspect(each, self.source(event), self._clean(event)) for each, event in doubted.items()]

    def source(self, event: Event) -> Source:
        """Return the checkpoint that was read, with the receipts that have put it under quarantine since.

        Raises:
            InputError: it is not kept any more.
        """
        (producer, at), tree = _saved(event), digest.parse(event.payload["tree"])
        if not self._store.trees.is_present(tree):
            raise InputError(
                f"checkpoint {at.step} of job {producer} is not kept any more; without it nothing is as recorded"
            )
        return Source(producer, at.attempt, at.step, tree, tuple(sorted(self.marks(producer, at, tree))))

    def marks(self, job_id: str, at: Position, tree: Digest) -> set[Digest]:
        """Return the receipts that have put a checkpoint under quarantine, by itself or with its attempt."""
        with self._store.database.read() as connection:
            return marking(connection, tree) | marking(connection, attempt_digest(job_id, at.attempt))

    def _clean(self, event: Event) -> Source | None:
        producer, at = _saved(event)
        finding = self._taint(producer, at)
        if finding is None or finding["rollback_to"] is None:
            return None
        back = Position(*finding["rollback_to"])
        for saved in self._ledger.checkpoints(producer):
            tree = digest.parse(saved.payload["tree"])
            if Position(saved.attempt, saved.step) == back and self._store.trees.is_present(tree):
                return Source(producer, back.attempt, back.step, tree)
        return None

    def _taint(self, job_id: str, at: Position) -> Finding | None:
        """Return the newest finding by which a job was tainted when it saved a checkpoint."""
        findings = (_finding(incident, job_id) for incident in self._newest_first)
        return next((each for each in findings if each is not None and Position(*each["tainted_from"]) <= at), None)


def _finding(incident: Incident, job_id: str) -> Finding | None:
    found = (incident.report or {}).get("jobs", ())
    return next((each for each in found if each["job_id"] == job_id and each["tainted_from"] is not None), None)


def _is_of(declared: Consumption, event: Event) -> bool:
    said = event.payload
    same = (said["use"], said["producer"], said["producer_step"]) == (declared.use, declared.job, declared.step)
    return same and (declared.use != str(Use.MERGE) or said["at_step"] == declared.at_step)


def _saved(event: Event) -> tuple[str, Position]:
    """Return by whom and when what was read had been saved."""
    said = event.payload
    return said["producer"], Position(said["producer_attempt"], said["producer_step"])


def _read_at(event: Event) -> Position:
    return Position(event.attempt, event.payload["at_step"])
