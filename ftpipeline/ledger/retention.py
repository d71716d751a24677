"""Which checkpoints are kept (pure).

Laws: the newest `keep` of a job are kept, by attempt and step as numbers; so is every one that another job consumed,
that the newest attempt resumed from, or that is evidence because it is under quarantine, which counts as no newest one.
"""

from collections.abc import Collection, Iterable, Sequence

from ftpipeline.digest import Digest
from ftpipeline.ledger.events import Event, Kind


def retained(
    saved: Iterable[Event], keep: int | None, needed: Collection[Digest], marked: Collection[Digest] = ()
) -> list[Event]:
    """Return the events of the checkpoints that are kept, oldest first.

    Args:
        saved: `checkpoint_saved` events of one job.
        keep: how many of the newest; None for all.
        needed: trees that are kept whatever their age.
        marked: trees under quarantine.
    """
    ordered = sorted(saved, key=lambda event: (event.attempt, event.step, event.seq))
    clean = dict.fromkeys(event.payload["tree"] for event in reversed(ordered) if event.payload["tree"] not in marked)
    newest = list(clean)[:keep]
    kept = {*newest, *needed, *marked}
    return [event for event in ordered if event.payload["tree"] in kept]


def keep_of(opened: Event | None) -> int | None:
    """Return how many checkpoints the attempt that opened declares to keep; None for all."""
    return None if opened is None else opened.payload.get("keep")


def needed_trees(job_id: str, opened: Event | None, consumptions: Iterable[Event]) -> set[Digest]:
    """Return the trees of a job's checkpoints that must not go.

    Args:
        job_id: the job.
        opened: its newest `job_opened`.
        consumptions: `checkpoint_consumed` events of any jobs.
    """
    needed = {
        event.payload["tree"]
        for event in consumptions
        if event.job_id != job_id and event.payload["producer"] == job_id
    }
    resumed = None if opened is None else opened.payload["resumed_from"]
    return needed if resumed is None else {*needed, resumed["tree"]}


def newest(events: Sequence[Event], kind: Kind) -> Event | None:
    """Return the newest event of a kind in a job's events; None if there is none."""
    return next((event for event in reversed(events) if event.kind is kind), None)
