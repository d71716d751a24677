"""Exports the ledger of jobs as one file that proves itself offline (contract C8); see `ledger_bundle_verify`.

It holds every event of the jobs up to the cut, their signed heads, the receipts that the events name, and the recorded
elements folded from the events. Law: one cut and one key give the same bytes every time.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from ftpipeline.cycle.bundle import write_bundle
from ftpipeline.cycle.bundle_format import (
    CONSUMPTION_LEDGER,
    JOBS_MANIFEST,
    STATEMENT,
    blob_name,
    encode,
    events_name,
    heads_name,
)
from ftpipeline.cycle.ledger_bundle_verify import statement_of, verify_ledger_bytes
from ftpipeline.digest import Digest, canonical_json
from ftpipeline.errors import UnknownNameError
from ftpipeline.ledger.chain import StoredEvent, known_events
from ftpipeline.ledger.events import Event
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.ledger.manifest import consumption_ledger, manifest, receipts_named
from ftpipeline.receipts import SigningKey, sign
from ftpipeline.store.opened import Store


@dataclass(frozen=True)
class LedgerBundleInfo:
    """An exported bundle.

    Attributes:
        path: where it stands.
        digest: of the file.
        size: in bytes.
        root: of the `concurrent_jobs_manifest` at the cut.
        jobs: the jobs in it.
        keyid: of the key that signed it.
    """

    path: Path
    digest: Digest
    size: int
    root: Digest
    jobs: tuple[str, ...]
    keyid: str


def export_ledger(
    store: Store,
    ledger: Ledger,
    target: Path,
    key: SigningKey,
    job_ids: Collection[str] | None = None,
    receipts: Iterable[Digest] = (),
) -> LedgerBundleInfo:
    """Write the ledger of jobs, as it stands now, to a file, whole or not at all, in place of what stands there.

    Args:
        store: holds the receipts.
        ledger: holds the events.
        target: the file.
        key: signs the bundle; the one that heads and receipts are signed with.
        job_ids: which jobs, with those that they consumed from at any distance; None for all.
        receipts: digests of receipts to add to those that the events name.

    Raises:
        UnknownNameError: a job never opened, or there is none.
        ChainError: a chain does not verify.
        VerificationError: it would not verify, or is too large for a bundle.
        CorruptArtifactError: a receipt is missing or altered.
        EnvironmentProblemError: the file cannot be written, or the ledger not be read.
    """
    stored = _stored(ledger, job_ids)
    chains = {job_id: known_events(job_id, events) for job_id, events in stored.items()}
    document = manifest(chains)
    blobs = sorted({*receipts_named(chains), *receipts})
    members = {
        JOBS_MANIFEST: canonical_json(document),
        CONSUMPTION_LEDGER: canonical_json(consumption_ledger(chains)),
        **{events_name(job_id): _lines(event.line() for event in events) for job_id, events in stored.items()},
        **_heads(ledger, stored),
        **{blob_name(digest): store.blobs.read_bytes(digest) for digest in blobs},
    }
    data = encode({**members, STATEMENT: sign(statement_of(members), key)})
    verify_ledger_bytes(data, key.public)  # nobody is handed a bundle that does not verify
    digest = write_bundle(target, data)
    return LedgerBundleInfo(target, digest, len(data), document["root"], tuple(chains), key.public.keyid)


def _stored(ledger: Ledger, job_ids: Collection[str] | None) -> dict[str, list[StoredEvent]]:
    wanted = [head.job_id for head in ledger.jobs()] if job_ids is None else _with_producers(ledger, job_ids)
    if not wanted:
        raise UnknownNameError("the ledger holds no job; train one first")
    stored = {}
    for job_id in sorted(wanted):
        last = ledger.verify(job_id)
        stored[job_id] = [event for event in ledger.stored(job_id) if event.seq <= last.seq]
    return stored


def _with_producers(ledger: Ledger, job_ids: Collection[str]) -> set[str]:
    found: set[str] = set()
    waiting = sorted(job_ids)
    while waiting:
        job_id = waiting.pop()
        if job_id not in found:
            found.add(ledger.job(job_id).job_id)
            waiting += [producer for event in ledger.consumptions([job_id]) if (producer := _producer(event))]
    return found


def _producer(event: Event) -> str | None:
    maker = event.payload.get("maker")
    return event.payload.get("producer") or (None if maker is None else maker["job_id"])


def _heads(ledger: Ledger, stored: dict[str, list[StoredEvent]]) -> dict[str, bytes]:
    members = {}
    for job_id, events in stored.items():
        signed = [head.envelope.encode() for head in ledger.signed_heads(job_id) if head.seq <= events[-1].seq]
        if signed:
            members[heads_name(job_id)] = _lines(signed)
    return members


def _lines(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
