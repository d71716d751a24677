"""What an isolation does to the store and the registry: marks, pointers and production.

Laws: doing any of it again changes nothing; what was done is read back from where it was written, so that the report of
an isolation that was cut short and taken up again tells all of it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ftpipeline.cycle.fleet import Fleet
from ftpipeline.cycle.incident import Incident
from ftpipeline.digest import Digest, parse
from ftpipeline.errors import QuarantinedError, TransitionError
from ftpipeline.guard.lineage import Position
from ftpipeline.guard.plan import JobAction
from ftpipeline.ledger.quarantined import attempt_digest
from ftpipeline.registry.registry import Registry
from ftpipeline.registry.stages import UNDECIDED, Stage
from ftpipeline.store.opened import Store
from ftpipeline.store.reach import made_with

ACTOR = "divergence guard"


def unusable(store: Store, fleet: Fleet, action: JobAction) -> dict[Digest, str]:
    """Return what of a job may not be used any more, each with what it is.

    These are the checkpoints from its first tainted position on, what its tainted attempts ended with, everything that
    was made from that, and the attempts that are tainted whole.
    """
    since = action.tainted_from
    if since is None:
        return {}
    head = fleet.heads.get(action.job_id)
    if head is None:  # an artifact that a tainted job made
        return {parse(action.job_id): "artifact", **_made_with(store, [parse(action.job_id)])}
    told = fleet.told.get(action.job_id)
    ended = () if told is None else told.outputs
    clean = {tree for at, tree in ended if at < since}
    recorded = [record.output for record in store.results.of_key(parse(head.opened["step_key"]))]  # may lack its event
    outputs = [tree for tree in (*(tree for _, tree in ended), *recorded) if tree not in clean]
    saved = [one for one in (() if told is None else told.saved) if one.at >= since]
    attempts = [attempt for attempt in range(1, head.attempt + 1) if Position(attempt, 0) >= since]
    return {
        **_made_with(store, outputs),
        **dict.fromkeys(outputs, "output"),
        **{one.tree: f"checkpoint of attempt {one.at.attempt}, step {one.at.step}," for one in saved},
        **{attempt_digest(action.job_id, attempt): f"attempt {attempt}" for attempt in attempts},
    }


def mark(store: Store, incident: Incident, action: JobAction, digests: Iterable[tuple[Digest, str]]) -> None:
    """Put what a job may not hand out any more under quarantine."""
    for digest, what in digests:
        store.quarantine.mark(digest, incident.divergence, f"{what} of {action.job_id}: {action.reason}")


def marked(store: Store, incident: Incident) -> set[Digest]:
    """Return what the incident put under quarantine."""
    return {mark.digest for mark in store.quarantine.marks() if mark.receipt == incident.divergence}


def move_pointers(store: Store, incident: Incident, fleet: Fleet, actions: Sequence[JobAction]) -> None:
    """Let each job's pointer, and the asset partitions that hold something marked, go back to what is clean."""
    run = run_name(incident)
    for action in actions:
        clean = fleet.tree(action.job_id, action.rollback_to)
        if clean is not None:
            store.pointers.put(checkpoint_asset(action.job_id), None, run, 0, clean)
    unclean = marked(store, incident)
    for digest in sorted(unclean):
        for pointer in store.pointers.ending_at(digest):
            earlier = store.pointers.latest_but(pointer.asset, pointer.partition, unclean)
            if earlier is not None:
                store.pointers.put(pointer.asset, pointer.partition, run, 0, earlier.digest)


def moved_pointers(store: Store, incident: Incident) -> list[dict[str, Any]]:
    """Return the pointers that the incident moved."""
    rows = store.pointers.of_run(run_name(incident))
    return [{"asset": row.asset, "partition": row.partition, "digest": row.digest} for row in rows]


def run_name(incident: Incident) -> str:
    """Return the run that pointers are moved by."""
    return f"isolation {incident.name}"


def checkpoint_asset(job_id: str) -> str:
    """Return the name that the pointer to a job's last clean checkpoint is kept under."""
    return f"checkpoint {job_id}"


def move_stages(store: Store, incident: Incident) -> list[dict[str, Any]]:
    """Take what is marked out of every stage: production is rolled back, other stages reject it.

    Returns:
        The productions that stay where they are, with the reason; resolving them is refused all the same.
    """
    registry = Registry(store.database, store.trees)
    unclean = marked(store, incident)
    stuck = []
    for name in registry.names():
        for stage, pointer in registry.pointers(name).items():
            if pointer.digest is None or pointer.digest not in unclean:
                continue
            reason = f"{pointer.digest} is contaminated; {run_name(incident)}"
            if stage in UNDECIDED:
                registry.reject(name, pointer.digest, reason, ACTOR)
                continue
            try:
                registry.rollback(name, reason=reason, actor=ACTOR, expect=pointer.generation)
            except (TransitionError, QuarantinedError) as error:
                stuck.append({"name": name, "digest": pointer.digest, "problem": str(error)})
    return stuck


def moved_stages(store: Store, incident: Incident) -> list[dict[str, Any]]:
    """Return the moves in the registry that the incident made."""
    registry = Registry(store.database, store.trees)
    moves = [(name, row) for name in registry.names() for row in registry.history(name)]
    return [
        {"name": name, "stage": str(row.to_stage), "digest": row.digest, "generation": row.generation}
        for name, row in moves
        if row.actor == ACTOR
        and row.reason.endswith(run_name(incident))
        and row.to_stage in (Stage.PRODUCTION, Stage.REJECTED)
    ]


def _made_with(store: Store, roots: Sequence[Digest]) -> dict[Digest, str]:
    with store.database.read() as connection:
        return dict.fromkeys(sorted(made_with(connection, roots)), "artifact made from the output")
