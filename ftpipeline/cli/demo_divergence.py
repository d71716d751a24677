"""The demo's third act: jobs train at once, one diverges, and what it has tainted is isolated."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from ftpipeline.cli.common import stderr, stdout
from ftpipeline.cli.demo_jobs import Jobs, running
from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.watch import watch
from ftpipeline.digest import Digest
from ftpipeline.example.fleet import BLEND, HOT, NAMES, SECOND_BLEND, STEADY, write_fleet
from ftpipeline.ledger.events import Kind
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.ledger.rows import JobHead
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store

_FOLDER = "fleet"


def diverge(folder: Path, home: Home, week: str) -> dict[str, Any]:
    """Train the example's fleet at once, wait for the divergence, and have it isolated; or tell of an earlier one.

    Args:
        folder: of the demo, with its tickets.
        home: where everything is kept.
        week: ISO week that all of them train.

    Returns:
        What became of each job, with the receipts, as strict JSON.

    Raises:
        WorkerError: a job ended before it was to; its error stands above.
        FtpipelineError: the incident cannot be isolated.
    """
    files = write_fleet(folder / _FOLDER)
    began = time.monotonic()
    with closing(home.open()) as store:
        incident = _known(store)
        if incident is None:
            incident = _diverged(files, home, week, store)
        elif incident.isolated is None:
            incident = _isolated(home, incident)
        told = _document(store, incident)
    return {**told, "seconds": round(time.monotonic() - began, 1), "pipelines": [str(file) for file in files.values()]}


def _diverged(files: Mapping[str, Path], home: Home, week: str, store: Store) -> Incident:
    """Train all at once until one of them has diverged and is isolated, and those that are clean have ended."""
    stderr.print(f"\n[bold]{len(files)} jobs at once, week {week}[/]")
    with running(files, home, week) as jobs:
        _let_them_consume(jobs, store)
        incident = _found(jobs, store)
        stderr.print(f"{incident.job_id} diverged at step {incident.onset}; isolating", markup=False)
        incident = _isolated(home, incident)
        jobs.wait()
    return incident


def _let_them_consume(jobs: Jobs, store: Store) -> None:
    """Start the jobs, whoever is consumed first, and return once both merges have happened."""
    jobs.start(HOT)
    jobs.until(lambda: _job(store, HOT) is not None, "its training began")
    jobs.start(BLEND)
    jobs.start(STEADY)
    jobs.until(lambda: _job(store, BLEND) is not None, "its training began")
    jobs.start(SECOND_BLEND)
    jobs.until(lambda: _has_merged(store, BLEND) and _has_merged(store, SECOND_BLEND), "the checkpoints were merged")


def _found(jobs: Jobs, store: Store) -> Incident:
    """Scan as the divergence sensor does, until it finds what it looks for."""
    found: list[Incident] = []

    def scanned() -> bool:
        found.extend(watch(store, ledger_of(store)).waiting)
        return bool(found)

    jobs.until(scanned, "the divergence was confirmed")
    return found[0]


def _isolated(home: Home, incident: Incident) -> Incident:
    from ftpipeline.orchestration.isolate_now import isolate_now  # Dagster is loaded where it runs something

    return isolate_now(home, incident.name)


def _known(store: Store) -> Incident | None:
    """Return the incident of an earlier demo."""
    jobs = {head.job_id for head in ledger_of(store).jobs() if head.opened["pipeline"] == HOT}
    return next((incident for incident in Incidents(store.database).all() if incident.job_id in jobs), None)


def _job(store: Store, name: str) -> JobHead | None:
    return next((head for head in ledger_of(store).jobs() if head.opened["pipeline"] == name), None)


def _has_merged(store: Store, name: str) -> bool:
    head = _job(store, name)
    events = [] if head is None else ledger_of(store).consumptions([head.job_id])
    return any(event.kind is Kind.CHECKPOINT_CONSUMED for event in events)


def _document(store: Store, incident: Incident) -> dict[str, Any]:
    report = incident.report or {}
    names = {head.job_id: str(head.opened["pipeline"]) for head in ledger_of(store).jobs()}
    actions = {action["job_id"]: action for action in report["actions"]}
    receipts = {"divergence": incident.divergence, "planned": incident.planned, "executed": incident.executed}
    return {
        "incident": incident.name,
        "job": incident.job_id,
        "onset": incident.onset,
        "last_good": incident.last_good,
        "verdict": report["verdict"],
        "jobs": [
            _job_json(names[found["job_id"]], found, actions[found["job_id"]], names)
            for found in report["jobs"]
            if found["job_id"] in names and names[found["job_id"]] in NAMES
        ],
        "receipts": {phase: _receipt(store, digest) for phase, digest in receipts.items() if digest is not None},
    }


def _receipt(store: Store, digest: Digest) -> dict[str, Any]:
    """Return where a signed receipt is: a file of a local store, a digest of a remote one."""
    blobs = store.blobs
    return {"digest": digest, "path": str(blobs.path(digest)) if isinstance(blobs, LocalBlobs) else None}


def _job_json(
    name: str, found: Mapping[str, Any], action: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, Any]:
    witness: Sequence[Mapping[str, Any]] = found["witness"]
    way = [*(edge["producer"] for edge in witness), *(edge["consumer"] for edge in witness[-1:])]
    return {
        "job": found["job_id"],
        "pipeline": name,
        "state": found["state"],
        "action": action["action"],
        "tainted_from": found["tainted_from"],
        "rolled_back_to": found["rollback_to"],
        "witness": [names.get(job_id, job_id) for job_id in way],
    }


def show(document: Mapping[str, Any]) -> None:
    """Print what became of each job."""
    stdout.print(
        f"\n{document['job']} diverged at step {document['onset']} and was good up to step {document['last_good']}; "
        f"incident {document['incident']}: {document['verdict']}",
        markup=False,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("job", "verdict", "action", "tainted from", "goes back to"):
        table.add_column(column, no_wrap=True)
    for job in document["jobs"]:
        since, back = _clock(job["tainted_from"]), _clock(job["rolled_back_to"])
        table.add_row(job["pipeline"], job["state"], job["action"], since, back)
    stdout.print(table)
    for job in document["jobs"]:
        if job["witness"]:
            stdout.print(f"witness path: {' > '.join(job['witness'])}", markup=False)
    for phase, receipt in document["receipts"].items():
        stdout.print(f"receipt, {phase}: {receipt['digest']}", markup=False)


def _clock(position: Sequence[int] | None) -> str:
    return "" if position is None else f"step {position[1]}"
