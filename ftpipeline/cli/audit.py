"""Verbs that look back, and the one that brings a database up to date."""

from typing import Annotated

import typer
from rich.tree import Tree as RichTree

from ftpipeline import digest
from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, short, stdout
from ftpipeline.cycle import audit
from ftpipeline.digest import Digest
from ftpipeline.registry.registry import Registry
from ftpipeline.store.database import upgrade as upgrade_database
from ftpipeline.store.home import Home, Store

Reference = Annotated[str, typer.Argument(help="A digest, or NAME@STAGE.", show_default=False)]


def lineage(reference: Reference, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Walk from an artifact back to the snapshot and its source query."""
    store = open_store(home)
    walked = audit.walk(store, find(store, reference))
    emit(walked.to_json(), as_json, lambda: _show(walked))


def find(store: Store, reference: str) -> Digest:
    """Return the digest that a digest or NAME@STAGE means."""
    name, at, stage = reference.rpartition("@")
    return Registry(store.database, store.trees).resolve(name, stage).digest if at else digest.parse(reference)


def _show(walked: audit.Lineage) -> None:
    produced = {record.output: record for record in walked.records}
    shown: set[Digest] = set()

    def grow(branch: RichTree, output: Digest) -> None:
        for name, needed in sorted(produced[output].inputs.items()):
            again = " (above)" if needed in shown else ""
            leaf = branch.add(f"{name}: [bold]{produced[needed].step}[/] {short(needed)}{again}")
            if needed not in shown:
                shown.add(needed)
                grow(leaf, needed)

    tree = RichTree(f"[bold]{produced[walked.root].step}[/] {walked.root}")
    grow(tree, walked.root)
    stdout.print(tree)
    for source in walked.sources:
        window = source["window"]
        stdout.print(f"source query {short(source['query_sha256'])} over {window['start']} to {window['end']}:")
        stdout.print(source["query"], markup=False)


def upgrade(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Bring the database to the schema of this version."""
    before, after = upgrade_database(Home.locate(home).database_url)
    document = {"from": before, "to": after}
    emit(document, as_json, lambda: stdout.print(f"database schema {before or 'none'} -> {after}"))
