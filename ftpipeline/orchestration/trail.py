"""The way from a registered model back to its source query, as links and digests where a person looks at it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import dagster as dg

from ftpipeline.cycle.stages import BY_NAME
from ftpipeline.digest import Digest
from ftpipeline.orchestration.metadata import Metadata, table

if TYPE_CHECKING:
    from ftpipeline.cycle.audit import Lineage
    from ftpipeline.store.opened import Store

_STATIONS: Mapping[str, str] = {
    "artifact": "export",
    "gate record": "gate",
    "evaluation report": "evaluate",
    "manifest": "manifest",
    "adapter": "train",
    "base model": "base_model",
    "train data": "split",
    "curated rows": "curate",
    "snapshot": "snapshot",
}
"""What people call the outputs of the stages that a registered model goes back to; nearest first."""


def source(store: "Store", snapshot: Digest) -> Metadata:
    """Return the query that a snapshot is the answer to.

    Raises:
        VerdictError: the snapshot is not recorded.
    """
    from ftpipeline.cycle.audit import walk  # with the database library, which loading a code location does not need

    return _queries(walk(store, snapshot))


def trail(
    store: "Store",
    artifact: Digest,
    inputs: Mapping[str, Digest],
    keys: Mapping[str, dg.AssetKey],
    partition: str,
) -> Metadata:
    """Return a table of everything that a registered artifact goes back to, a link to each, and the source query.

    Args:
        store: holds the lineage.
        artifact: the registered artifact.
        inputs: outputs of the stages that it was registered from, by stage.
        keys: asset keys by stage.
        partition: the week.

    Raises:
        VerdictError: something on the way is not recorded.
    """
    from ftpipeline.cycle.audit import walk  # as above

    lineage = walk(store, artifact)
    outputs = {record.step: record.output for record in lineage.records} | dict(inputs)
    runs = {record.output: record.run_id for record in lineage.records}
    rows = [{"what": what, **_made(store, runs, outputs[stage])} for what, stage in _STATIONS.items()]
    links = {
        what: dg.MetadataValue.url(asset_url(keys[stage], partition if BY_NAME[stage].weekly else None))
        for what, stage in _STATIONS.items()
    }
    return {"goes back to": table(rows), **_queries(lineage), **links}


def asset_url(key: dg.AssetKey, partition: str | None) -> str:
    """Return the address of an asset, or of one partition of it, in a UI that is served without a path prefix."""
    place = f"/assets/{'/'.join(map(quote, key.path))}"
    return place if partition is None else f"{place}?view=partitions&partition={quote(partition)}"


def _made(store: "Store", runs: Mapping[Digest, str], output: Digest) -> dict[str, Any]:
    run = runs[output] if output in runs else store.results.made(output)[0].run_id
    return {"digest": output, "made by run": run[:8]}


def _queries(lineage: "Lineage") -> Metadata:
    queries = [
        f"```sql\n{source['query']}\n```\nrows from {source['window']['start']} until {source['window']['end']}"
        for source in lineage.sources
    ]
    return {"source query": dg.MetadataValue.md("\n\n".join(queries))}
