"""Verbs about the source of tickets."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.table import Table

from ftpipeline.cli.common import JsonOption, emit, stdout
from ftpipeline.cycle import source_check
from ftpipeline.cycle.source_check import Checked

app = typer.Typer(help="Where the tickets come from.", no_args_is_help=True)

_SHOWN = 20  # rejects that a person sees; --json holds all


@app.callback()
def source() -> None:
    """Where the tickets come from."""


@app.command("check")
def check(
    path: Annotated[
        Path, typer.Argument(help="A pipeline file, or a CSV, JSONL or Parquet file of tickets.", show_default=False)
    ],
    as_json: JsonOption = False,
) -> None:
    """Read a source as a snapshot would, and account for every row; for a bare file, propose its schema."""
    checked = source_check.check(path, datetime.now(UTC))
    document = checked.to_json()
    emit(document, as_json, lambda: _show(checked, document))
    checked.require_rate()


def _show(checked: Checked, document: dict[str, Any]) -> None:
    if checked.proposed is not None:
        stdout.print("proposed for the pipeline file:", markup=False)
        stdout.print(yaml.safe_dump({"source": dict(checked.proposed)}, sort_keys=False), markup=False)
    stdout.print(f"{document['read']} read: {document['accepted']} accepted, {document['rejected']} rejected")
    for reason, count in document["reasons"].items():
        stdout.print(f"  {count} {reason}", markup=False)
    if document["rejects"]:
        stdout.print(_table(document["rejects"][:_SHOWN]))
    if len(document["rejects"]) > _SHOWN:
        stdout.print(f"{len(document['rejects']) - _SHOWN} more; --json lists all")


def _table(rejects: list[dict[str, Any]]) -> Table:
    table = Table("line", "row", "byte", "reason", "text")
    for reject in rejects:
        places = ("" if reject[name] is None else str(reject[name]) for name in ("line", "row", "byte_offset"))
        table.add_row(*places, reject["reason"], reject["excerpt"].replace("[", r"\["))
    return table
