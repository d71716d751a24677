"""What a bundle says of an artifact's descent, and which blobs prove it.

Law: `read_canonical(lineage.encode(), BundledLineage, ...) == lineage`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field

from ftpipeline.cycle.bundle_format import LINEAGE, blob_name
from ftpipeline.digest import Digest, canonical_json, of_bytes
from ftpipeline.errors import TreeError
from ftpipeline.receipts import VerificationError, read_canonical
from ftpipeline.records import LineageRecord
from ftpipeline.schema import DigestText, Section
from ftpipeline.tree_format import decode as decode_tree

_Digest = Annotated[Digest, Field(pattern=r"^sha256:[0-9a-f]{64}$")]

_MANIFEST, _SNAPSHOT, _RECORD = "manifest", "snapshot", "record.json"

_PROOFS: Mapping[str, frozenset[str]] = {
    _SNAPSHOT: frozenset({_RECORD}),
    _MANIFEST: frozenset({"manifest.json"}),
    "evaluate": frozenset({"report.json"}),
    "report": frozenset({"candidate.json", "production.json"}),
    "gate": frozenset({"gate.json"}),
}
"""Step to those files of its output that travel in a bundle: small, and without rows, texts or weights."""

_OPTIONAL = frozenset({"production.json"})  # a first release is compared with nothing


class Node(Section):
    """One put of the lineage.

    Attributes:
        step: name of the step.
        key: step key.
        code: code fingerprint.
        environment: environment fingerprint.
        inputs: input name to digest of a tree.
        params: the parameters in the typed form that the key is computed from.
        output: digest of the output tree.
        manifest: digest of the tree of the manifest it was made under, if there was one.
        run_id: run that executed the step.
        isolation: level of confinement it ran at.
        started: UTC.
        finished: UTC.
        cpu_seconds: CPU time of the step and its children.
        libraries: distribution name to version.
        escalations: where the code fingerprint was widened to a whole module or the project, and why.
    """

    step: str
    key: _Digest
    code: _Digest
    environment: _Digest
    inputs: dict[str, _Digest]
    params: list[Any]
    output: _Digest
    manifest: _Digest | None
    run_id: str
    isolation: str
    started: AwareDatetime
    finished: AwareDatetime
    cpu_seconds: float
    libraries: dict[str, str]
    escalations: tuple[str, ...]

    @classmethod
    def of(cls, record: LineageRecord) -> "Node":
        """Return the node of a recorded put."""
        return cls(
            step=record.step,
            key=record.key,
            code=record.code,
            environment=record.environment,
            inputs=dict(record.inputs),
            params=record.params["typed"],
            output=record.output,
            manifest=record.manifest,
            run_id=record.run_id,
            isolation=record.isolation,
            started=record.started,
            finished=record.finished,
            cpu_seconds=record.cpu_seconds,
            libraries=dict(record.libraries),
            escalations=tuple(record.escalations),
        )


class BundledLineage(Section):
    """The member `lineage.json`.

    Attributes:
        root: the artifact.
        nodes: the puts it descends from, one an output.
    """

    type: Literal["ftpipeline.lineage"] = "ftpipeline.lineage"
    version: Literal[1] = 1
    root: _Digest
    nodes: tuple[Node, ...]

    def encode(self) -> bytes:
        """Return the lineage as canonical JSON."""
        return canonical_json(self.model_dump(mode="json"))


class _Lenient(Section):
    model_config = ConfigDict(extra="ignore")


class Window(_Lenient):
    """The window of a snapshot, as its record states it."""

    start: str
    end: str
    timezone: str | None


class Source(_Lenient):
    """What a snapshot was asked for; the other fields of its record are not repeated here."""

    query: str
    query_sha256: DigestText
    window: Window


ReadBlob = Callable[[Digest], bytes]
"""Returns the verified bytes of a blob."""


def proofs(lineage: BundledLineage, read: ReadBlob) -> dict[Digest, bytes]:
    """Return the blobs that prove a lineage: its trees, and the files named in `_PROOFS`.

    Raises:
        VerificationError: a tree is none, or lacks a file that its step always writes.
    """
    found: dict[Digest, bytes] = {}
    for step, tree in _trees(lineage):
        found[tree] = read(tree)
        for digest in _proof_files(step, tree, found[tree]).values():
            found[digest] = read(digest)
    return found


def sources(lineage: BundledLineage, read: ReadBlob) -> dict[Digest, Source]:
    """Return what each snapshot of the lineage was asked for, by the snapshot's digest.

    Raises:
        VerificationError: there is no snapshot, or a record does not say what was asked.
    """
    snapshots = [node.output for node in lineage.nodes if node.step == _SNAPSHOT]
    if not snapshots:
        raise VerificationError(LINEAGE, "reaches no snapshot", "name an artifact that was made from one")
    return {snapshot: _source(snapshot, read) for snapshot in snapshots}


def _trees(lineage: BundledLineage) -> Iterator[tuple[str, Digest]]:
    for node in lineage.nodes:
        yield node.step, node.output
        if node.manifest is not None:
            yield _MANIFEST, node.manifest


def _proof_files(step: str, tree: Digest, data: bytes) -> dict[str, Digest]:
    try:
        files = {entry.path: entry.sha256 for entry in decode_tree(tree, data)}
    except TreeError as error:
        raise VerificationError(blob_name(tree), f"is not the tree of step {step!r} ({error})") from error
    wanted = _PROOFS.get(step, frozenset())
    if missing := sorted(wanted - files.keys() - _OPTIONAL):
        raise VerificationError(blob_name(tree), f"is the tree of step {step!r} and lists no {', '.join(missing)}")
    return {name: files[name] for name in sorted(wanted & files.keys())}


def _source(snapshot: Digest, read: ReadBlob) -> Source:
    record = _proof_files(_SNAPSHOT, snapshot, read(snapshot))[_RECORD]
    source = read_canonical(read(record), Source, blob_name(record))
    if of_bytes(source.query.encode()) != source.query_sha256:
        raise VerificationError(blob_name(record), "states a query that does not have the hash it states")
    return source
