"""Verbs that look back, and the one that brings a database up to date."""

from pathlib import Path
from typing import Annotated

import typer
from rich.tree import Tree as RichTree

from ftpipeline import digest
from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, short, stderr, stdout
from ftpipeline.cycle import audit
from ftpipeline.cycle.bundle import export_bundle
from ftpipeline.digest import Digest
from ftpipeline.receipts import SigningKey
from ftpipeline.registry.registry import Registry
from ftpipeline.store.database import upgrade as upgrade_database
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store

Reference = Annotated[str, typer.Argument(help="A digest, or NAME@STAGE.", show_default=False)]


def lineage(
    reference: Reference,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", help="Write the walk to a file that `verify` proves offline.", show_default=False),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Walk from an artifact back to the snapshot and its source query."""
    store = open_store(home)
    walked = audit.walk(store, find(store, reference))
    if bundle is not None:
        _export(store, walked.root, bundle)
    emit(walked.to_json(), as_json, lambda: _show(walked))


def _export(store: Store, root: Digest, target: Path) -> None:
    """Write a bundle signed with the home's key, and its public key beside it."""
    key = SigningKey.of_home(store.home.root)
    written = export_bundle(store, root, target, key)
    public = target.with_suffix(".pub.pem")
    key.public.write(public)
    stderr.print(f"{written.path}: {written.size} bytes, {written.digest}", markup=False, soft_wrap=True)
    stderr.print(f"prove it with: ftpipeline verify {target} --key {public}", markup=False, soft_wrap=True)


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
