"""Verbs of the registry. The actor is who the caller says he is; it is recorded, not authenticated."""

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, short, stdout
from ftpipeline.cycle.registry_export import export_entry
from ftpipeline.errors import UnknownNameError
from ftpipeline.receipts import SigningKey
from ftpipeline.registry.records import Entry, HistoryRow, Resolution
from ftpipeline.registry.registry import Registry

app = typer.Typer(help="What is registered, and how it came to stand where it stands.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Registry name, which is the pipeline's.", show_default=False)]
Artifact = Annotated[str, typer.Argument(help="Digest of the registered artifact.", show_default=False)]
Reference = Annotated[str, typer.Argument(help="NAME@STAGE.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", help="Why, in a person's words; kept for ever.", show_default=False)]
Actor = Annotated[str | None, typer.Option("--actor", help="Who; the login name unless given.", show_default=False)]


def open_registry(home: Path | None) -> Registry:
    """Open the registry of a home, which must be there."""
    return Registry.of_store(open_store(home))


@app.command("list")
def list_entries(
    name: Annotated[str | None, typer.Argument(show_default=False)] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List entries, newest last."""
    entries = open_registry(home).entries(name)
    emit([entry_json(entry) for entry in entries], as_json, lambda: stdout.print(_table(entries), soft_wrap=False))


@app.command("show")
def show(
    name: Name,
    artifact: Annotated[str | None, typer.Argument(help="One artifact of that name.", show_default=False)] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the entries of a name, or one of them, with verdict and reasons."""
    registry = open_registry(home)
    entries = [registry.entry(name, artifact)] if artifact else registry.entries(name)
    emit([entry_json(entry) for entry in entries], as_json, lambda: _show(entries))


@app.command("history")
def history(name: Name, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show every move of a name, oldest first."""
    rows = open_registry(home).history(name)
    document = {"history": [_row_json(row) for row in rows]}
    emit(document, as_json, lambda: _show_history(rows))


@app.command("export")
def export(
    reference: Reference,
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.", show_default=False)],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an entry to a folder: artifact, manifest, reports, lineage bundle and model card."""
    store = open_store(home)
    done = export_entry(store, *split_reference(reference), folder, SigningKey.of_home(store.home.root))
    document = {"folder": str(done.folder), "bundle": done.bundle, "entry": entry_json(done.entry)}
    emit(document, as_json, lambda: stdout.print(f"{done.entry.artifact} is in {done.folder}", markup=False))


@app.command("reject")
def reject(
    name: Name,
    artifact: Artifact,
    reason: Reason,
    actor: Actor = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reject a candidate, shadow or canary for good."""
    entry = open_registry(home).reject(name, artifact, reason, actor or getpass.getuser())
    emit(entry_json(entry), as_json, lambda: stdout.print(f"{entry.artifact} is rejected"))


@app.command("delete")
def delete(
    name: Name,
    artifact: Artifact,
    reason: Reason,
    actor: Actor = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let go of the bytes of a retired or rejected entry; its receipts and history stay."""
    entry = open_registry(home).delete(name, artifact, reason=reason, actor=actor or getpass.getuser())
    emit(entry_json(entry), as_json, lambda: stdout.print(f"{entry.artifact} is deleted"))


def resolve(
    reference: Reference,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the one digest that a name and stage stand for; its bytes are verified."""
    found = open_registry(home).resolve(*split_reference(reference))
    emit(_resolution_json(found), as_json, lambda: print(found.digest))


def promote(
    name: Name,
    artifact: Artifact,
    to: Annotated[str, typer.Option("--to", help="shadow, canary or production.", show_default=False)],
    expect: Annotated[
        int, typer.Option("--expect", help="Generation of the stage as you saw it; 0 if never set.", show_default=False)
    ],
    reason: Reason,
    actor: Actor = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move an entry one stage up, if nobody else moved the stage first."""
    registry = open_registry(home)
    entry = registry.entry(name, artifact)
    moved = registry.promote(name, entry.artifact, to, expect=expect, reason=reason, actor=actor or getpass.getuser())
    emit(_resolution_json(moved), as_json, lambda: _moved(moved))


def rollback(
    name: Name,
    reason: Reason,
    expect: Annotated[
        int | None,
        typer.Option("--expect", help="Generation of production as you saw it; not compared unless given."),
    ] = None,
    actor: Actor = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put the previous production artifact back; its bytes are verified first."""
    moved = open_registry(home).rollback(name, reason=reason, actor=actor or getpass.getuser(), expect=expect)
    emit(_resolution_json(moved), as_json, lambda: _moved(moved))


def split_reference(reference: str) -> tuple[str, str]:
    """Return name and stage of `NAME@STAGE`.

    Raises:
        UnknownNameError: it names no stage.
    """
    name, at, stage = reference.rpartition("@")
    if not at or not name:
        raise UnknownNameError(f"{reference!r} names no stage; write NAME@STAGE, for example router@production")
    return name, stage


def _moved(moved: Resolution) -> None:
    stdout.print(f"{moved.name}@{moved.stage} is {moved.digest} (generation {moved.generation})")


def _resolution_json(found: Resolution) -> dict[str, Any]:
    return {"name": found.name, "stage": str(found.stage), "digest": found.digest, "generation": found.generation}


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {
        "name": entry.name,
        "artifact": entry.artifact,
        "stage": str(entry.stage),
        "verdict": entry.verdict,
        "reasons": [dict(reason) for reason in entry.reasons],
        "manifest": entry.manifest,
        "base_model": entry.base_model,
        "report": entry.report,
        "gate": entry.gate,
        "week": entry.week,
        "run_id": entry.run_id,
        "registered": str(entry.registered),
    }


def _row_json(row: HistoryRow) -> dict[str, Any]:
    return {
        "generation": row.generation,
        "digest": row.digest,
        "from": str(row.from_stage) if row.from_stage is not None else None,
        "to": str(row.to_stage),
        "actor": row.actor,
        "reason": row.reason,
        "receipt": row.receipt,
        "time": str(row.time),
    }


def _show(entries: list[Entry]) -> None:
    for entry in entries:
        for key, value in entry_json(entry).items():
            lines = [f"{reason['code']}: {reason['message']}" for reason in value] if key == "reasons" else [value]
            for line in lines:
                stdout.print(f"{key:<12} {line}", markup=False)
        stdout.print()


def _table(entries: list[Entry]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("registered (UTC)", no_wrap=True)
    table.add_column("artifact", no_wrap=True)
    for column in ("stage", "verdict", "name"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        table.add_row(_minute(entry.registered), short(entry.artifact), str(entry.stage), entry.verdict, entry.name)
    return table


def _show_history(rows: list[HistoryRow]) -> None:
    """Print two lines a move; no column cuts what a person wrote."""
    for row in rows:
        move = f"{row.from_stage} -> {row.to_stage}" if row.from_stage is not None else str(row.to_stage)
        stdout.print(f"{_minute(row.time)}  {short(row.digest)}  {move} (generation {row.generation})", markup=False)
        stdout.print(f"  {row.actor}: {row.reason}", markup=False)


def _minute(time: str) -> str:
    """Return an ISO 8601 time as people read it, to the minute."""
    return time[:16].replace("T", " ")
