"""Verbs that look after what is stored."""

import getpass
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.table import Table

from ftpipeline import digest
from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, short, stdout
from ftpipeline.cycle import lift as lifting
from ftpipeline.cycle import maintenance
from ftpipeline.store.fsck import Report
from ftpipeline.store.gc import Collected
from ftpipeline.store.quarantine import Mark

app = typer.Typer(help="Artifacts that no route may use.", no_args_is_help=True)

_GRACE_HOURS = maintenance.GRACE.total_seconds() / 3600


def fsck(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Hash every object and follow every row; altered bytes are moved to lost+found."""
    report = maintenance.fsck(open_store(home))
    problems = [
        {"digest": problem.digest, "kind": str(problem.kind), "dependants": list(problem.dependants)}
        for problem in report.problems
    ]
    document = {"problems": problems, "objects": report.objects, "bytes": report.size}
    emit(document, as_json, lambda: _show_report(report))
    if problems:
        raise typer.Exit(1)


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; say how much would go.")] = False,
    grace: Annotated[
        float, typer.Option("--grace", help="Hours for which an untouched object is kept whatever happens.", min=0)
    ] = _GRACE_HOURS,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove what no pointer, registry entry or lease reaches."""
    collected = maintenance.gc(open_store(home), timedelta(hours=grace), dry_run=dry_run)
    document = {
        "dry_run": dry_run,
        "objects": collected.objects,
        "freed": collected.freed,
        "results": collected.results,
        "swept": collected.swept,
    }
    emit(document, as_json, lambda: _show_collected(collected, dry_run))


@app.command("list")
def list_marks(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List marks, lifted ones too, newest last."""
    marks = open_store(home).quarantine.marks()
    emit([_mark_json(mark) for mark in marks], as_json, lambda: stdout.print(_table(marks), soft_wrap=False))


@app.command("lift")
def lift(
    artifact: Annotated[str, typer.Argument(help="Digest of what is quarantined.", show_default=False)],
    reason: Annotated[
        str, typer.Option("--reason", help="Why, in a person's words; kept for ever.", show_default=False)
    ],
    receipt: Annotated[
        str | None,
        typer.Option("--receipt", help="Digest of a signed receipt; one is signed unless given.", show_default=False),
    ] = None,
    actor: Annotated[
        str | None, typer.Option("--actor", help="Who; the login name unless given.", show_default=False)
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Lift every mark of an artifact or job attempt, by a signed receipt; the marks stay on record."""
    marked, store = digest.parse(artifact), open_store(home)
    given = None if receipt is None else digest.parse(receipt)
    lifting.lift(store, marked, reason, actor or getpass.getuser(), given)
    document = [_mark_json(mark) for mark in store.quarantine.marks(marked)]
    emit(document, as_json, lambda: stdout.print(f"{marked} is no longer under quarantine"))


def _show_report(report: Report) -> None:
    for problem in report.problems:
        stdout.print(f"[bold red]{problem.kind}[/] {problem.digest}")
        for dependant in problem.dependants:
            stdout.print(f"  needed by {dependant}")
    count = len(report.problems)
    stdout.print(f"{report.objects} objects, {report.size} bytes: {count or 'no'} problem{'' if count == 1 else 's'}")


def _show_collected(collected: Collected, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    stdout.print(f"{collected.freed} bytes of {collected.objects} objects {would}freed")
    stdout.print(f"{collected.swept} bytes of abandoned work {would}swept")
    stdout.print(f"{collected.results} step results {would}set aside; their lineage stays")


def _mark_json(mark: Mark) -> dict[str, Any]:
    return {
        "digest": mark.digest,
        "reason": mark.reason,
        "receipt": mark.receipt,
        "marked": mark.marked,
        "lifted": mark.lifted,
        "lift_reason": mark.lift_reason,
        "lift_receipt": mark.lift_receipt,
    }


def _table(marks: list[Mark]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("artifact", no_wrap=True)
    for column in ("marked", "reason", "lifted", "why"):
        table.add_column(column, overflow="fold")
    for mark in marks:
        lifted = (mark.lifted or "")[:10]
        table.add_row(short(mark.digest), mark.marked[:10], mark.reason, lifted, mark.lift_reason or "")
    return table
