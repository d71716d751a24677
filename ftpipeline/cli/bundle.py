"""The verb that proves a bundle offline."""

from pathlib import Path
from typing import Annotated

import typer

from ftpipeline.cli.common import JsonOption, emit, stdout
from ftpipeline.cycle.bundle_verify import Verified, read_bundle, verify_bytes
from ftpipeline.cycle.ledger_bundle_verify import VerifiedLedger, is_ledger_bundle, verify_ledger_bytes
from ftpipeline.receipts import PublicKey


def verify(
    bundle: Annotated[
        Path, typer.Argument(help="The file that `lineage --bundle` or `ledger export` wrote.", show_default=False)
    ],
    key: Annotated[Path, typer.Option("--key", help="PEM file of the signer's public key.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Prove a bundle's lineage or ledger from the file and a public key alone; needs no home."""
    data, public = read_bundle(bundle), PublicKey.read(key)
    if is_ledger_bundle(data):
        ledger = verify_ledger_bytes(data, public)
        emit(ledger.to_json(), as_json, lambda: _show_ledger(ledger))
    else:
        verified = verify_bytes(data, public)
        emit(verified.to_json(), as_json, lambda: _show(verified))


def _show(verified: Verified) -> None:
    stdout.print(f"[bold green]verified[/]: {verified.root}")
    stdout.print(f"{len(verified.nodes)} steps, signed by key {verified.keyid}")
    for snapshot, source in verified.sources.items():
        stdout.print(
            f"snapshot {snapshot}, from {source.window.start} to {source.window.end}, of the query:", markup=False
        )
        stdout.print(source.query, markup=False)


def _show_ledger(verified: VerifiedLedger) -> None:
    stdout.print(f"[bold green]verified[/]: concurrent jobs {verified.root}")
    for job_id, events in verified.chains.items():
        stdout.print(f"job {job_id}: {len(events)} events, up to {events[-1].digest}", markup=False)
    for digest, statement in verified.receipts.items():
        stdout.print(f"receipt {digest}: {statement.predicate_type}", markup=False)
    stdout.print(f"signed by key {verified.keyid}")
