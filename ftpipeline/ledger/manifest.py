"""The recorded elements of concurrent training at a cut: who trained, and who consumed whose checkpoint (pure).

A cut is a vector of (job, digest of one of its events); each digest stands for all that the job did before. Law: one
cut gives one document and one root, whoever folds it and whatever happened since.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ftpipeline.digest import Digest, of_json
from ftpipeline.ledger.events import Event, Kind
from ftpipeline.ledger.retention import keep_of, needed_trees, newest, retained

MANIFEST_SCHEMA = "ftpipeline.concurrent_jobs_manifest/1"
CONSUMPTION_SCHEMA = "ftpipeline.checkpoint_consumption_ledger/1"

_OPENED = ("run_id", "pipeline", "week", "step_key", "params_digest", "family", "inputs", "resumed_from")

Chains = Mapping[str, Sequence[Event]]
"""Job to its events up to the cut, oldest first; of `metrics` events, the newest is enough."""


def manifest(chains: Chains) -> dict[str, Any]:
    """Return the `concurrent_jobs_manifest` at the ends of `chains`."""
    consumed = [event for job in sorted(chains) for event in chains[job] if event.kind is Kind.CHECKPOINT_CONSUMED]
    is_open = {job: _is_open(events) for job, events in chains.items()}
    document = {
        "schema": MANIFEST_SCHEMA,
        "cut": _cut(chains),
        "jobs": [_open_job(job, chains[job], consumed) for job in sorted(chains) if is_open[job]],
        "closed": [_closed_job(job, chains[job]) for job in sorted(chains) if not is_open[job]],
    }
    return {**document, "root": of_json(document)}


def consumption_ledger(chains: Chains) -> dict[str, Any]:
    """Return the `checkpoint_consumption_ledger` at the ends of `chains`.

    A consumption whose producer's event lies beyond the cut is listed in `beyond`: the jobs were never at such a cut
    together.
    """
    events = [event for job in sorted(chains) for event in chains[job]]
    saved = {event.digest for event in events if event.kind is Kind.CHECKPOINT_SAVED}
    checkpoints = [event for event in events if event.kind is Kind.CHECKPOINT_CONSUMED]
    artifacts = [event for event in events if event.kind is Kind.ARTIFACT_CONSUMED]
    document = {
        "schema": CONSUMPTION_SCHEMA,
        "cut": _cut(chains),
        "checkpoints": [_consumption(event) for event in checkpoints],
        "artifacts": [_consumption(event) for event in artifacts],
        "beyond": [event.digest for event in checkpoints if event.payload["producer_event"] not in saved],
    }
    return {**document, "root": of_json(document)}


def receipts_named(chains: Chains) -> set[Digest]:
    """Return the digests of the receipts that events name."""
    kinds = (Kind.DIVERGENCE_DETECTED, Kind.ISOLATION_ACTION)
    return {event.payload["receipt"] for events in chains.values() for event in events if event.kind in kinds}


def _cut(chains: Chains) -> dict[str, str]:
    return {job: events[-1].digest for job, events in chains.items()}


def _is_open(events: Sequence[Event]) -> bool:
    last = next(event for event in reversed(events) if event.kind in (Kind.JOB_OPENED, Kind.JOB_CLOSED))
    return last.kind is Kind.JOB_OPENED


def _open_job(job_id: str, events: Sequence[Event], consumed: Sequence[Event]) -> dict[str, Any]:
    opened = newest(events, Kind.JOB_OPENED)
    saved = [event for event in events if event.kind is Kind.CHECKPOINT_SAVED]
    kept = retained(saved, keep_of(opened), needed_trees(job_id, opened, consumed))
    said = {} if opened is None else opened.payload
    return {
        **_place(job_id, events),
        **{name: said.get(name) for name in _OPENED},
        "state": _state(events),
        "checkpoints": [_checkpoint(event) for event in kept],
        "consumed": [_consumption(event) for event in events if event.kind is Kind.CHECKPOINT_CONSUMED],
        "artifacts": [_consumption(event) for event in events if event.kind is Kind.ARTIFACT_CONSUMED],
    }


def _closed_job(job_id: str, events: Sequence[Event]) -> dict[str, Any]:
    closed = newest(events, Kind.JOB_CLOSED)
    said = {} if closed is None else closed.payload
    return {**_place(job_id, events), "reason": said.get("reason"), "output": said.get("output")}


def _place(job_id: str, events: Sequence[Event]) -> dict[str, Any]:
    last = events[-1]
    return {
        "job_id": job_id,
        "head": {"seq": last.seq, "digest": last.digest},
        "attempt": last.attempt,
        "step": last.step,
        "epoch": last.epoch,
    }


def _state(events: Sequence[Event]) -> dict[str, Any]:
    """Return the last point and evaluation that the newest attempt reported; None where it has none yet."""
    mine = [event for event in events if event.attempt == events[-1].attempt]
    batch, evaluation = newest(mine, Kind.METRICS), newest(mine, Kind.EVALUATION)
    return {
        "point": None if batch is None else batch.payload["points"][-1],
        "evaluation": None if evaluation is None else {"step": evaluation.step, **evaluation.payload},
    }


def _checkpoint(event: Event) -> dict[str, Any]:
    return {"attempt": event.attempt, "step": event.step, "tree": event.payload["tree"], "event": event.digest}


def _consumption(event: Event) -> dict[str, Any]:
    consumer = {"consumer": event.job_id, "attempt": event.attempt, "step": event.step, "event": event.digest}
    return {**consumer, **event.payload}
