"""`ftpipeline trace` and `ftpipeline isolate`: who is tainted by a job that diverged, and what is done about it."""

import getpass
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, stdout, stoppable
from ftpipeline.cli.replay import arms_line
from ftpipeline.cycle.attributions import upgraded
from ftpipeline.cycle.isolation_plan import FINDINGS, plan_of
from ftpipeline.cycle.suspicion import Suspicion, Window, on_record, suspicion_of
from ftpipeline.guard.trace import TraceVerdict
from ftpipeline.ledger.ledger import Ledger, ledger_of
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job that diverged.", show_default=False)]
WindowOption = Annotated[
    str | None,
    typer.Option(
        metavar="LAST_GOOD:ONSET",
        help="Steps of its newest attempt; what the detector found unless given.",
        show_default=False,
    ),
]


def trace(job: JobArgument, window: WindowOption = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Tell who is tainted by a job, since when, by which path, and where each can go back to (exit 1 if diverged)."""
    store = open_store(home)
    ledger = ledger_of(store)
    suspicion = suspicion_of(store, ledger, job, None if window is None else Window.parse(window))
    document = {"job": job, **_findings(store, ledger, suspicion)}
    emit(document, as_json, lambda: _show(document))
    if document["verdict"] != TraceVerdict.NO_DIVERGENCE:
        raise typer.Exit(1)


def isolate(
    job: JobArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would be done.")] = False,
    window: WindowOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop, quarantine and roll back what a diverged job has tainted; nothing else is touched."""
    store = open_store(home)
    ledger = ledger_of(store)
    suspicion = suspicion_of(store, ledger, job, None if window is None else Window.parse(window))
    if dry_run:
        document = {"job": job, **_findings(store, ledger, suspicion)}
    else:
        from ftpipeline.orchestration.isolate_now import isolate_now  # Dagster is loaded by the verbs that run

        opened = on_record(store, ledger, suspicion, None if window is None else getpass.getuser())
        with stoppable():
            done = isolate_now(Home.locate(home), opened.name)
        receipts = {"divergence": done.divergence, "planned": done.planned, "executed": done.executed}
        document = {"job": job, "incident": done.name, **(done.report or {}), "receipts": receipts}
    emit({"dry_run": dry_run, **document}, as_json, lambda: _show(document))


def _findings(store: Store, ledger: Ledger, suspicion: Suspicion) -> Mapping[str, Any]:
    """Return the plan for a divergence as the fleet stands; of one that was isolated, what was found then.

    Either way with what replays have shown since.
    """
    incident = suspicion.incident
    if incident is not None and incident.report is not None:
        found = {name: incident.report[name] for name in FINDINGS}
    else:
        found = plan_of(store, ledger, suspicion.divergence, suspicion.marked_by).findings
    return {**found, "jobs": upgraded(ledger, incident, found["jobs"])}


def _show(document: Mapping[str, Any]) -> None:
    stdout.print(f"{document['job']}: [bold]{document['verdict']}[/]")
    actions = {action["job_id"]: action for action in document["actions"]}
    table = Table(box=None, pad_edge=False)
    for column in ("job", "state", "tainted from", "action", "goes back to", "by way of"):
        table.add_column(column, overflow="fold")
    for found in document["jobs"]:
        action = actions[found["job_id"]]
        since, back = _clock(found["tainted_from"]), _clock(found["rollback_to"])
        table.add_row(found["job_id"], found["state"], since, action["action"], back, _way(found["witness"]))
    stdout.print(table, soft_wrap=False)
    for found in document["jobs"]:
        if "replays" in found:
            stdout.print(f"{found['job_id']}: {found['exposure']} ({arms_line(found['replays'])})", markup=False)
    for cause in document["shared_causes"]:
        stdout.print(f"shared input {cause['digest']}: {', '.join(cause['jobs'])}", markup=False)


def _way(witness: Sequence[Mapping[str, Any]]) -> str:
    return " > ".join([*(edge["producer"] for edge in witness), witness[-1]["consumer"]]) if witness else ""


def _clock(position: Sequence[int] | None) -> str:
    return "" if position is None else f"{position[0]}/{position[1]}"
