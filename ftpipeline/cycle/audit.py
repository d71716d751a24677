"""The audit walk: from any artifact back to the snapshot and its source query (contract C5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.errors import UnknownNameError, VerdictError
from ftpipeline.records import LineageRecord
from ftpipeline.store.opened import Store


@dataclass(frozen=True)
class Lineage:
    """Everything an artifact was made from.

    Attributes:
        root: the artifact.
        records: the puts it descends from, each after those that consumed its output; the first one made the root.
        sources: the record of every snapshot reached, in the order of `records`.
    """

    root: Digest
    records: tuple[LineageRecord, ...]
    sources: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the walk as one JSON document."""
        return {
            "digest": self.root,
            "nodes": [_node(record) for record in self.records],
            "source": dict(self.sources[0]) if self.sources else None,
            "sources": [dict(source) for source in self.sources],
        }


def _node(record: LineageRecord) -> dict[str, Any]:
    return {
        "step": record.step,
        "key": record.key,
        "output": record.output,
        "inputs": dict(record.inputs),
        "params": record.params["plain"],
        "code": record.code,
        "manifest": record.manifest,
        "run_id": record.run_id,
        "isolation": record.isolation,
        "finished": record.finished.isoformat(),
        "cpu_seconds": record.cpu_seconds,
        "libraries": dict(record.libraries),
    }


def walk(store: Store, root: Digest) -> Lineage:
    """Walk from an artifact to its sources, breadth first.

    Raises:
        UnknownNameError: nothing in this home made the artifact.
        VerdictError: an input on the way was made by nothing that is recorded.
    """
    if not store.results.made(root):
        raise UnknownNameError(f"nothing in {store.home.root} made {root}; check the digest and --home")
    records: dict[Digest, LineageRecord] = {}
    waiting = [root]
    while waiting:
        output = waiting.pop(0)
        if output not in records:
            records[output] = _producer(store, output)
            waiting += records[output].inputs.values()
    ordered = tuple(records.values())
    snapshots = [record for record in ordered if record.step == "snapshot"]
    return Lineage(root, ordered, tuple(_source(store, record) for record in snapshots))


def _producer(store: Store, output: Digest) -> LineageRecord:
    """The put that made an output; where several made the same bytes, the first that was committed."""
    made = store.results.made(output)
    if not made:
        raise VerdictError(f"lineage is broken: {output} is an input, and no record says what made it; run fsck")
    return made[0]


def _source(store: Store, snapshot: LineageRecord) -> Mapping[str, Any]:
    record = digest.parse_json(store.trees.read(snapshot.output, "record.json"))
    return {"snapshot": snapshot.output, **{name: record[name] for name in ("query", "query_sha256", "window")}}
