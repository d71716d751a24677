"""Proves the bundle of a ledger with nothing but the bundle and its signer's public key.

Every byte of the file is checked. Each chain holds by itself; what is signed of it, and what is folded from it, is
checked against it; the statement names every member with its digest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ftpipeline.cycle.bundle_format import (
    CONSUMPTION_LEDGER,
    CONTAINER,
    JOBS_MANIFEST,
    STATEMENT,
    blob_name,
    decode,
    events_name,
    heads_name,
)
from ftpipeline.cycle.bundle_verify import check_members
from ftpipeline.digest import Digest, canonical_json, of_bytes
from ftpipeline.ledger.chain import StoredEvent, check_chain, known_events
from ftpipeline.ledger.events import Event
from ftpipeline.ledger.manifest import consumption_ledger, manifest, receipts_named
from ftpipeline.ledger.signed_heads import check_envelope
from ftpipeline.receipts import PublicKey, Statement, Subject, VerificationError, verify

_PREDICATE_TYPE = "ftpipeline:ledger-bundle/v1"
_EVENTS, _HEADS, _BLOBS, _LINES = "events/", "heads/", "blobs/", ".jsonl"


@dataclass(frozen=True)
class VerifiedLedger:
    """What a bundle proves.

    Attributes:
        root: of the `concurrent_jobs_manifest` at the cut.
        chains: events of each job, all of which are there.
        receipts: what each receipt in the bundle says, by its digest.
        keyid: of the key that signed the bundle, the heads and the receipts.
    """

    root: Digest
    chains: Mapping[str, list[Event]]
    receipts: Mapping[Digest, Statement]
    keyid: str

    def to_json(self) -> dict[str, Any]:
        """Return the proof as one JSON document."""
        jobs = [
            {"job_id": job_id, "events": len(events), "head": events[-1].digest, "attempt": events[-1].attempt}
            for job_id, events in self.chains.items()
        ]
        receipts = [
            {"digest": digest, "type": statement.predicate_type, "predicate": dict(statement.predicate)}
            for digest, statement in self.receipts.items()
        ]
        return {"root": self.root, "jobs": jobs, "receipts": receipts, "keyid": self.keyid}


def is_ledger_bundle(data: bytes) -> bool:
    """Tell whether a bundle is one of a ledger, and not one of an artifact's lineage.

    Raises:
        VerificationError: it is no bundle.
    """
    return JOBS_MANIFEST in decode(data)


def verify_ledger_bytes(data: bytes, key: PublicKey) -> VerifiedLedger:
    """Prove the bundle `data`.

    Raises:
        ChainError: an event or a signed head does not verify; the error names job and event.
        VerificationError: something else does not verify; `where` names the member, or the container.
    """
    members = decode(data)
    if STATEMENT not in members:
        raise VerificationError(CONTAINER, f"holds no {STATEMENT}")
    statement = verify(members.pop(STATEMENT), key, STATEMENT)
    chains = {job_id: _chain(job_id, members) for job_id in _jobs(members)}
    _check_heads(chains, members, key)
    check_members(statement, members)
    known = {job_id: known_events(job_id, events) for job_id, events in chains.items()}
    document = _check_folds(known, members)
    receipts = _receipts(known, members, key)
    if statement != statement_of(members):
        raise VerificationError(STATEMENT, "is not the statement of a ledger's bundle")
    return VerifiedLedger(document["root"], known, receipts, key.keyid)


def statement_of(members: Mapping[str, bytes]) -> Statement:
    """Return what the signer of a bundle states: the digests of its members.

    Args:
        members: all members but the statement itself, name to content.
    """
    subjects = tuple(Subject(name, of_bytes(members[name])) for name in sorted(members))
    return Statement(subjects, _PREDICATE_TYPE, {"schema": _PREDICATE_TYPE})


def _jobs(members: Mapping[str, bytes]) -> list[str]:
    names = sorted(name for name in members if name.startswith(_EVENTS))
    return [name.removeprefix(_EVENTS).removesuffix(_LINES) for name in names]


def _chain(job_id: str, members: Mapping[str, bytes]) -> list[StoredEvent]:
    name = events_name(job_id)
    lines = _lines(members[name], name)
    events = [StoredEvent.from_line(line, f"{name}, line {number},") for number, line in enumerate(lines, 1)]
    check_chain(job_id, events)
    return events


def _check_heads(chains: Mapping[str, list[StoredEvent]], members: Mapping[str, bytes], key: PublicKey) -> None:
    for job_id, events in chains.items():
        name = heads_name(job_id)
        for envelope in _lines(members[name], name) if name in members else ():
            check_envelope(job_id, envelope, {event.seq: event.digest for event in events}, key)


def _check_folds(chains: Mapping[str, list[Event]], members: Mapping[str, bytes]) -> dict[str, Any]:
    """Fold the chains again, and return the manifest."""
    document = manifest(chains)
    for name, folded in ((JOBS_MANIFEST, document), (CONSUMPTION_LEDGER, consumption_ledger(chains))):
        if members.get(name) != canonical_json(folded):
            raise VerificationError(name, "is not what the events amount to")
    return document


def _receipts(
    chains: Mapping[str, list[Event]], members: Mapping[str, bytes], key: PublicKey
) -> dict[Digest, Statement]:
    found = {}
    for name in sorted(name for name in members if name.startswith(_BLOBS)):
        digest = of_bytes(members[name])
        if blob_name(digest) != name:
            raise VerificationError(name, "does not have the digest that it is named by")
        found[digest] = verify(members[name], key, name)
    if missing := sorted(receipts_named(chains) - found.keys()):
        raise VerificationError(blob_name(missing[0]), "is a receipt that an event names, and missing from the bundle")
    named = {JOBS_MANIFEST, CONSUMPTION_LEDGER, *map(blob_name, found)}
    named |= {name(job_id) for job_id in chains for name in (events_name, heads_name)}
    if others := sorted(members.keys() - named):
        raise VerificationError(others[0], "is in the bundle, and belongs to none of its jobs")
    return found


def _lines(data: bytes, name: str) -> list[bytes]:
    if not data.endswith(b"\n"):
        raise VerificationError(name, "does not end with a whole line")
    return data[:-1].split(b"\n")
