"""`ftpipeline erase`: a customer asks to be forgotten."""

from typing import Annotated

import typer

from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, stdout
from ftpipeline.cycle.erase import Erasure
from ftpipeline.cycle.erase import erase as erase_key


def erase(
    key: Annotated[
        str, typer.Argument(help="A group key such as customer_id=C7, or the id of one row.", show_default=False)
    ],
    reason: Annotated[
        str,
        typer.Option("--reason", help="Why, without naming the person; kept for ever.", show_default=False),
    ],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove somebody's rows from what is stored and from every later snapshot; name the models that saw them."""
    erasure = erase_key(open_store(home), key, reason)
    emit(erasure.to_json(), as_json, lambda: _show(erasure))


def _show(erasure: Erasure) -> None:
    stdout.print(f"{erasure.rows} rows erased from {len(erasure.snapshots)} snapshots; no later one takes them in")
    stdout.print(f"{len(erasure.blobs)} files of {len(erasure.trees)} artifacts are gone ({erasure.freed} bytes)")
    for model in erasure.models:
        stages = ", ".join(f"{entry['name']}@{entry['stage']} ({entry['week']})" for entry in model.registered)
        stdout.print(f"  {model.step} {model.artifact} was made from them; {stages or 'not registered'}", markup=False)
    if erasure.models:
        stdout.print("run the weeks concerned again to replace these models")
