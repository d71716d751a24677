"""Verbs of the manifest: are its hashes pinned, and which can be recovered."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from ftpipeline import manifest
from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, stderr, stdout
from ftpipeline.cycle.pinning import pin as recover

app = typer.Typer(help="The frozen manifest: check that it pins everything, pin what it can.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="A manifest file, YAML or JSON.", show_default=False)]


@app.command("check")
def check(file: File, as_json: JsonOption = False) -> None:
    """Check a manifest: types, unknown keys, and that nothing in it can move."""
    checked = manifest.load(file)
    missing = manifest.pins(checked).missing
    document = {"run_id": checked.run_id, "accepted": True, "missing": list(missing)}

    def show() -> None:
        stdout.print(f"{file}: accepted")
        for field in missing:
            stdout.print(f"  {field} is not given; `ftpipeline manifest pin` fills it in")

    emit(document, as_json, show)


@app.command("pin")
def pin(
    file: File,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here; stdout unless given.", show_default=False)
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fill in every hash that this home can recover, and list those it cannot (then exit 1)."""
    pinned = recover(file, open_store(home))
    document = {"filled": list(pinned.filled), "unrecoverable": dict(pinned.unrecoverable), "manifest": pinned.document}
    text = yaml.safe_dump(pinned.document, sort_keys=False, allow_unicode=True)
    if output is not None:
        output.write_text(text, "utf-8")
    emit(document, as_json, lambda: stdout.print(text, markup=False) if output is None else None)
    for field, reason in pinned.unrecoverable.items():
        stderr.print(f"not recovered: {field}: {reason}", markup=False)
    if pinned.unrecoverable:
        raise typer.Exit(1)
