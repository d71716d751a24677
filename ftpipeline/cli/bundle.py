"""The verb that proves a bundle offline."""

from pathlib import Path
from typing import Annotated

import typer

from ftpipeline.cli.common import JsonOption, emit, stdout
from ftpipeline.cycle.bundle_verify import Verified, verify_bundle
from ftpipeline.receipts import PublicKey


def verify(
    bundle: Annotated[Path, typer.Argument(help="The file that `lineage --bundle` wrote.", show_default=False)],
    key: Annotated[Path, typer.Option("--key", help="PEM file of the signer's public key.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Prove a bundle's lineage from the file and a public key alone; needs no home."""
    verified = verify_bundle(bundle, PublicKey.read(key))
    emit(verified.to_json(), as_json, lambda: _show(verified))


def _show(verified: Verified) -> None:
    stdout.print(f"[bold green]verified[/]: {verified.root}")
    stdout.print(f"{len(verified.nodes)} steps, signed by key {verified.keyid}")
    for snapshot, source in verified.sources.items():
        stdout.print(
            f"snapshot {snapshot}, from {source.window.start} to {source.window.end}, of the query:", markup=False
        )
        stdout.print(source.query, markup=False)
