"""Verbs of the ledger: which jobs train, who consumed what, and whether the chains hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, short, stderr, stdout
from ftpipeline.cycle.ledger_bundle import export_ledger
from ftpipeline.digest import parse, parse_json
from ftpipeline.errors import ChainError, InputError
from ftpipeline.ledger.cuts import Cut
from ftpipeline.ledger.events import Event
from ftpipeline.ledger.ledger import Ledger, ledger_of
from ftpipeline.ledger.rows import JobHead
from ftpipeline.receipts import SigningKey

app = typer.Typer(help="Training jobs, and who consumed whose checkpoint.", no_args_is_help=True)

Jobs = Annotated[list[str] | None, typer.Argument(help="Job ids; all jobs unless given.", show_default=False)]


@app.command("jobs")
def jobs(
    is_open: Annotated[bool, typer.Option("--open", help="Only those that have not closed.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs with the place where each stands."""
    heads = ledger_of(open_store(home)).jobs(open_only=is_open)
    emit({"jobs": [_head_json(head) for head in heads]}, as_json, lambda: stdout.print(_table(heads), soft_wrap=False))


@app.command("consumed")
def consumed(
    job: Annotated[str | None, typer.Argument(help="Only what this job took or gave.", show_default=False)] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List which job consumed whose checkpoint or which artifact, and at which of its steps."""
    ledger = ledger_of(open_store(home))
    if job is not None:
        ledger.job(job)  # refuses one that never opened
    events = [event for event in ledger.consumptions() if job in (None, event.job_id, event.payload.get("producer"))]
    emit({"consumed": [_consumption_json(event) for event in events]}, as_json, lambda: _show_consumed(events))


@app.command("manifest")
def manifest(
    cut: Annotated[
        Path | None,
        typer.Option("--cut", help="JSON file: job id to digest of one of its events; now unless given."),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the concurrent_jobs_manifest: open jobs, their kept checkpoints and training state, and its root."""
    document = ledger_of(open_store(home)).manifest(None if cut is None else _read_cut(cut))
    emit(document, as_json, lambda: _show_manifest(document))


@app.command("verify")
def verify(job_ids: Jobs = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Check every event, head and signed head of jobs; tell where a chain is broken."""
    ledger = ledger_of(open_store(home))
    checked = [_check(ledger, job_id) for job_id in job_ids or ledger.named_jobs()]
    emit({"jobs": checked}, as_json, lambda: _show_checked(checked))
    if any(job["state"] != "verified" for job in checked):
        raise typer.Exit(1)


@app.command("export")
def export(
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.", show_default=False)],
    job_ids: Jobs = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write jobs, and those that they consumed from, to a file that `verify` proves offline."""
    store = open_store(home)
    key = SigningKey.of_home(store.home.root)
    written = export_ledger(store, ledger_of(store), output, key, job_ids or None)
    public = output.with_suffix(".pub.pem")
    key.public.write(public)
    document = {"path": str(written.path), "digest": written.digest, "size": written.size, "root": written.root}
    document |= {"jobs": list(written.jobs), "keyid": written.keyid, "key": str(public)}
    emit(document, as_json, lambda: stdout.print(f"{written.path}: {len(written.jobs)} jobs, {written.digest}"))
    stderr.print(f"prove it with: ftpipeline verify {output} --key {public}", markup=False, soft_wrap=True)


def _read_cut(path: Path) -> Cut:
    try:
        document = parse_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cut {str(path)!r} cannot be read ({error.strerror}); check the path") from error
    if not isinstance(document, dict):
        raise InputError(f"cut {str(path)!r} is no JSON object; give job id to digest of one of its events")
    return {job_id: parse(digest) for job_id, digest in document.items()}


def _check(ledger: Ledger, job_id: str) -> dict[str, Any]:
    try:
        head = ledger.verify(job_id)
    except ChainError as error:
        return {"job_id": job_id, "state": error.state, "seq": error.seq, "head": None, "problem": str(error)}
    return {"job_id": job_id, "state": "verified", "seq": head.seq, "head": head.digest, "problem": None}


def _head_json(head: JobHead) -> dict[str, Any]:
    told = {name: head.opened.get(name) for name in ("run_id", "pipeline", "week", "step_key", "resumed_from")}
    place = {"attempt": head.attempt, "step": head.step, "epoch": head.epoch, "seq": head.seq, "head": head.digest}
    return {"job_id": head.job_id, "open": head.is_open, **place, **told}


def _consumption_json(event: Event) -> dict[str, Any]:
    consumer = {"consumer": event.job_id, "attempt": event.attempt, "step": event.step, "event": event.digest}
    return {**consumer, **event.payload}


def _table(heads: Sequence[JobHead]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("job", no_wrap=True)
    for column in ("open", "attempt", "step", "events", "head", "run"):
        table.add_column(column, overflow="fold")
    for head in heads:
        place = [str(number) for number in (head.attempt, head.step, head.seq + 1)]
        run = str(head.opened.get("run_id"))
        table.add_row(head.job_id, "yes" if head.is_open else "", *place, short(head.digest), run)
    return table


def _show_consumed(events: Sequence[Event]) -> None:
    for event in events:
        said = event.payload
        if "producer" in said:
            what = f"checkpoint {said['producer_step']} of {said['producer']} (attempt {said['producer_attempt']})"
            what += f" as {said['use']}"
        else:
            maker = "" if said["maker"] is None else f", made by {said['maker']['job_id']}"
            what = f"{said['name']} ({said['kind']}{maker})"
        place = f"{event.job_id} (attempt {event.attempt}, step {event.step})"
        stdout.print(f"{place} consumed {what}: {short(said['tree'])}", markup=False)


def _show_manifest(document: dict[str, Any]) -> None:
    for job in document["jobs"]:
        point = job["state"]["point"]
        loss = "no point yet" if point is None else f"loss {point['loss']}"
        stdout.print(f"{job['job_id']} (attempt {job['attempt']}, step {job['step']}): {loss}", markup=False)
        for saved in job["checkpoints"]:
            stdout.print(f"  checkpoint {saved['step']} of attempt {saved['attempt']}: {short(saved['tree'])}")
    stdout.print(f"{len(document['jobs'])} open jobs, {len(document['closed'])} closed; root {document['root']}")


def _show_checked(checked: Sequence[dict[str, Any]]) -> None:
    for job in checked:
        if job["problem"] is None:
            stdout.print(f"[bold green]verified[/] {job['job_id']}: {job['seq'] + 1} events, {short(job['head'])}")
        else:
            stdout.print(f"[bold red]{job['state']}[/] ", end="")
            stdout.print(job["problem"], markup=False)
