"""Reading what the recorded elements at a cut are folded from, inside one transaction."""

from collections.abc import Mapping

from sqlalchemy import Connection

from ftpipeline.digest import Digest
from ftpipeline.errors import ChainError, UnknownNameError
from ftpipeline.ledger import rows
from ftpipeline.ledger.chain import MISSING, StoredEvent
from ftpipeline.ledger.events import Kind

Cut = Mapping[str, Digest]
"""Job to the digest of one of its events."""

_RARE_KINDS = tuple(kind for kind in Kind if kind is not Kind.METRICS)


def read_cut(connection: Connection, cut: Cut | None) -> dict[str, list[StoredEvent]]:
    """Return each job's events up to the cut, of metrics the newest and that at the cut only.

    Args:
        connection: of the transaction.
        cut: the vector; None for where every job stands now.

    Raises:
        UnknownNameError: a job never opened.
        ChainError: a job has no such event.
    """
    if cut is None:
        places = {head.job_id: head.seq for head in rows.heads(connection, open_only=False)}
    else:
        places = {job_id: _place(connection, job_id, digest) for job_id, digest in cut.items()}
    chains: dict[str, list[StoredEvent]] = {job_id: [] for job_id in sorted(places)}
    for event in rows.of_kinds(connection, _RARE_KINDS, None if cut is None else places):
        if event.job_id in places and event.seq <= places[event.job_id]:
            chains[event.job_id].append(event)
    for job_id, seq in places.items():
        chains[job_id] += rows.newest_metrics(connection, job_id, seq)
        chains[job_id].sort(key=lambda event: event.seq)
    return chains


def _place(connection: Connection, job_id: str, digest: Digest) -> int:
    if rows.find_head(connection, job_id) is None:
        raise UnknownNameError(f"job {job_id} is not in the ledger; see 'ftpipeline ledger jobs'")
    seq = rows.find_place(connection, job_id, digest)
    if seq is None:
        raise ChainError(job_id, MISSING, None, f"holds no event {digest}")
    return seq
