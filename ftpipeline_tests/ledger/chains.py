"""Chains of stored events, and what can be done to them."""

from dataclasses import asdict, replace
from typing import Any

from ftpipeline.digest import of_bytes
from ftpipeline.ledger.chain import StoredEvent
from ftpipeline.ledger.events import Draft, Kind, canonical_form, next_events
from ftpipeline_tests.ledger.world import metrics, opened, saved
from ftpipeline_tests.store.rows import digest

NOON = "2026-11-02T12:00:00.000000+00:00"


def chain_of(points: int, job_id: str = "job", time: str = NOON) -> list[StoredEvent]:
    """Return an opening, `points` batches of metrics with a checkpoint after every other, and a close."""
    drafts = [Draft(Kind.JOB_OPENED, 0, 0.0, opened(holder="me"))]
    for step in range(1, points + 1):
        drafts.append(metrics(step))
        if step % 2 == 0:
            drafts.append(saved(step, digest(f"{job_id} {step}")))
    drafts.append(Draft(Kind.JOB_CLOSED, points, 0.0, {"reason": "completed", "output": None, "error": None}))
    return [StoredEvent.of(event) for event in next_events(job_id, 0, None, drafts, time)]


def changed(event: StoredEvent, **fields: Any) -> StoredEvent:
    """Return a forgery: the event with other fields and the digest that fits them."""
    forged = replace(event, **fields)
    envelope = {name: value for name, value in asdict(forged).items() if name not in ("payload", "digest")}
    return replace(forged, digest=of_bytes(canonical_form(envelope, forged.payload)))
