"""Exports the lineage of an artifact as one file that proves itself offline (contract C5); see `bundle_verify`.

A bundle names raw rows and weights by digest only. Law: one lineage and one key give the same bytes every time.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from ftpipeline.cycle.audit import walk
from ftpipeline.cycle.bundle_format import LINEAGE, STATEMENT, blob_name, encode
from ftpipeline.cycle.bundle_lineage import BundledLineage, Node, proofs
from ftpipeline.cycle.bundle_verify import statement_of, verify_bytes
from ftpipeline.digest import Digest
from ftpipeline.errors import EnvironmentProblemError
from ftpipeline.receipts import SigningKey, sign
from ftpipeline.store.durable import staged, write_new
from ftpipeline.store.opened import Store


@dataclass(frozen=True)
class BundleInfo:
    """An exported bundle.

    Attributes:
        path: where it stands.
        digest: of the file.
        size: in bytes.
        root: the artifact.
        nodes: how many puts it holds.
        keyid: of the key that signed it.
    """

    path: Path
    digest: Digest
    size: int
    root: Digest
    nodes: int
    keyid: str


def export_bundle(store: Store, root: Digest, target: Path, key: SigningKey) -> BundleInfo:
    """Write the lineage of an artifact to a file, whole or not at all, in place of what stands there.

    Raises:
        UnknownNameError: nothing in this home made the artifact.
        VerdictError: the lineage is broken.
        VerificationError: it would not verify: no snapshot is reached, or a part is too large for a bundle.
        CorruptArtifactError: a blob that proves it is missing or altered.
        EnvironmentProblemError: the file cannot be written.
    """
    lineage = BundledLineage(root=root, nodes=tuple(Node.of(record) for record in walk(store, root).records))
    blobs = proofs(lineage, store.blobs.read_bytes)
    members = {LINEAGE: lineage.encode(), **{blob_name(digest): content for digest, content in blobs.items()}}
    data = encode({**members, STATEMENT: sign(statement_of(root, members), key)})
    verify_bytes(data, key.public)  # nobody is handed a bundle that does not verify
    digest = write_bundle(target, data)
    return BundleInfo(target, digest, len(data), root, len(lineage.nodes), key.public.keyid)


def write_bundle(target: Path, data: bytes) -> Digest:
    """Write a bundle whole or not at all, in place of what stands there, and return its digest.

    Raises:
        EnvironmentProblemError: it cannot be written.
    """
    try:
        with staged(target) as new:
            digest, _ = write_new(new, [data])
            os.replace(new, target)
    except OSError as error:
        raise EnvironmentProblemError(
            f"bundle {str(target)!r} cannot be written ({error.strerror}); name a file in a writable folder"
        ) from error
    return digest
