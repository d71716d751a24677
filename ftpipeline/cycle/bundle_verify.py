"""Proves a bundle with nothing but the bundle and its signer's public key: no home, no store, no database.

Every byte of the file is checked. What belongs to no member is determined by the members; every member is in the signed
statement; every blob has the digest that it is named by, and is needed by the walk.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftpipeline.cycle.bundle_format import BUNDLE_LIMIT, CONTAINER, LINEAGE, STATEMENT, blob_name, decode
from ftpipeline.cycle.bundle_lineage import BundledLineage, Node, Source, proofs, sources
from ftpipeline.cycle.bundle_walk import check_keys, check_walk
from ftpipeline.digest import Digest, of_bytes
from ftpipeline.errors import InputError
from ftpipeline.receipts import PublicKey, Statement, Subject, VerificationError, read_canonical, verify

_ARTIFACT = "artifact"  # name of the root among the subjects; no member is called so
_PREDICATE_TYPE = "ftpipeline:lineage-bundle/v1"


@dataclass(frozen=True)
class Verified:
    """What a bundle proves.

    Attributes:
        root: the artifact.
        nodes: the puts it descends from.
        sources: what each snapshot it descends from was asked for, by the snapshot's digest; at least one.
        keyid: of the key that signed the bundle.
    """

    root: Digest
    nodes: tuple[Node, ...]
    sources: Mapping[Digest, Source]
    keyid: str

    def to_json(self) -> dict[str, Any]:
        """Return the proof as one JSON document."""
        asked = [{"snapshot": snapshot, **source.model_dump(mode="json")} for snapshot, source in self.sources.items()]
        return {
            "digest": self.root,
            "nodes": [node.model_dump(mode="json") for node in self.nodes],
            "source": asked[0],
            "sources": asked,
            "keyid": self.keyid,
        }


def verify_bundle(path: Path, key: PublicKey) -> Verified:
    """Prove the bundle in the file `path`.

    Raises:
        InputError: the file cannot be read.
        VerificationError: something in it does not verify; `where` names the member, or the container.
    """
    return verify_bytes(read_bundle(path), key)


def read_bundle(path: Path) -> bytes:
    """Return the bytes of a bundle, or what is enough of them to see that it is too large.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(BUNDLE_LIMIT + 1)
    except OSError as error:
        raise InputError(f"bundle {str(path)!r} cannot be read ({error.strerror}); check the path") from error


def verify_bytes(data: bytes, key: PublicKey) -> Verified:
    """Prove the bundle `data`.

    Raises:
        VerificationError: something in it does not verify; `where` names the member, or the container.
    """
    members = decode(data)
    lineage = _signed_lineage(members, key)
    blobs = _Blobs(members)
    check_walk(lineage)
    check_keys(lineage)
    blobs.refuse_others(proofs(lineage, blobs.read))
    return Verified(lineage.root, lineage.nodes, sources(lineage, blobs.read), key.keyid)


def statement_of(root: Digest, members: Mapping[str, bytes]) -> Statement:
    """Return what the signer of a bundle states: the digests of its members, and of the artifact they are about.

    Args:
        root: the artifact.
        members: all members but the statement itself, name to content.
    """
    subjects = [Subject(name, of_bytes(members[name])) for name in sorted(members)]
    return Statement((Subject(_ARTIFACT, root), *subjects), _PREDICATE_TYPE, {"artifact": root})


def _signed_lineage(members: Mapping[str, bytes], key: PublicKey) -> BundledLineage:
    for name in (STATEMENT, LINEAGE):
        if name not in members:
            raise VerificationError(CONTAINER, f"holds no {name}")
    statement = verify(members[STATEMENT], key, STATEMENT)
    others = {name: content for name, content in members.items() if name != STATEMENT}
    check_members(statement, others, aside={_ARTIFACT})
    lineage = read_canonical(members[LINEAGE], BundledLineage, LINEAGE)
    if statement != statement_of(lineage.root, others):
        raise VerificationError(STATEMENT, f"is not the statement of a bundle about {lineage.root}")
    return lineage


def check_members(statement: Statement, members: Mapping[str, bytes], aside: Collection[str] = ()) -> None:
    """Refuse members that are not exactly those whose digests were signed.

    Args:
        statement: names every member, with its digest.
        members: name to content, without the statement itself.
        aside: names of subjects that are no members.

    Raises:
        VerificationError: one is missing, not named, or altered; `where` names it.
    """
    stated = {subject.name: subject.digest for subject in statement.subjects}
    for name in sorted((stated.keys() - set(aside)) | members.keys()):
        _check_member(name, stated, members)


def _check_member(name: str, stated: Mapping[str, Digest], members: Mapping[str, bytes]) -> None:
    if name not in members:
        raise VerificationError(name, "is in the signed statement, and missing from the bundle")
    if name not in stated:
        raise VerificationError(name, "is in the bundle, and missing from the signed statement")
    if of_bytes(members[name]) != stated[name]:
        raise VerificationError(name, "does not have the digest that was signed")


class _Blobs:
    """The blobs among the members, each hashed when it is read."""

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self._blobs = {name: content for name, content in members.items() if name not in (LINEAGE, STATEMENT)}

    def read(self, digest: Digest) -> bytes:
        name = blob_name(digest)
        if name not in self._blobs:
            raise VerificationError(name, "is needed by the lineage, and missing from the bundle")
        if of_bytes(self._blobs[name]) != digest:
            raise VerificationError(name, "does not have the digest that it is named by")
        return self._blobs[name]

    def refuse_others(self, needed: Mapping[Digest, bytes]) -> None:
        """Refuse blobs that nothing asked for; those that were asked for were hashed then."""
        if others := sorted(self._blobs.keys() - {blob_name(digest) for digest in needed}):
            raise VerificationError(others[0], "is in the bundle, and not needed by the lineage")
