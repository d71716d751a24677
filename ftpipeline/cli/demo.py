"""`ftpipeline demo`: two weekly cycles on generated tickets, one gated against the other, and a divergence isolated."""

import json
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from ftpipeline import pipeline as pipelines
from ftpipeline.cli import demo_divergence
from ftpipeline.cli.common import JsonOption, emit, stderr, stdout
from ftpipeline.cli.run import ui_command
from ftpipeline.digest import hex_of, parse
from ftpipeline.errors import WorkerError
from ftpipeline.pipeline import Pipeline
from ftpipeline.records import Verdict
from ftpipeline.registry.registry import Registry
from ftpipeline.store.home import Home

WEEKS = ("2026-W45", "2026-W46")
_REASON = "first release of the demo: there is nothing in production to compare with"


def demo(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where the demo is made.")] = Path("ftpipeline-demo"),
    as_json: JsonOption = False,
) -> None:
    """Generate tickets, run two weekly cycles, let one of several jobs diverge, and say how to open the UI."""
    pipeline, home = prepare(folder)
    first = _run_week(pipeline, home, WEEKS[0])
    if first["verdict"] == Verdict.FIRST_RELEASE:
        _release(pipeline, home, first["artifact"])
    second = _run_week(pipeline, home, WEEKS[1])
    incident = demo_divergence.diverge(folder, home, WEEKS[1])
    document = {
        "folder": str(folder.resolve()),
        "home": str(home.root),
        "cycles": [first, second],
        "incident": incident,
    }
    emit(document, as_json, lambda: _show(document, pipeline, home))


def prepare(folder: Path) -> tuple[Pipeline, Home]:
    """Write the example's pipeline file and tickets into `folder`, unless they are there.

    Raises:
        PipelineFileError: the folder holds another pipeline file that cannot be used.
    """
    from ftpipeline.example.tickets import generate

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "pipeline.yaml"
    if not file.exists():
        with stderr.status("generating tickets"):
            generate(folder)
        with resources.as_file(resources.files("ftpipeline.example") / "pipeline.yaml") as packaged:
            shutil.copyfile(packaged, file)
    return pipelines.load(file), Home(folder / ".ftpipeline")


def _run_week(pipeline: Pipeline, home: Home, week: str) -> dict[str, Any]:
    """Run a week in a process of its own: a process gives the memory of a training library back only when it ends.

    Raises:
        WorkerError: the run ended without a verdict; its error line is on stderr already.
    """
    stderr.print(f"\n[bold]{pipeline.name}, week {week}[/]")
    arguments = ["run", str(pipeline.path), "--week", week, "--home", str(home.root), "--json"]
    done = subprocess.run([sys.executable, "-m", "ftpipeline", *arguments], stdout=subprocess.PIPE, check=False)
    if not done.stdout.strip():
        raise WorkerError(f"week {week} ended with exit code {done.returncode}; its error stands above")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _release(pipeline: Pipeline, home: Home, artifact: str) -> None:
    """Promote the first candidate by hand, as a person would.

    Raises:
        FtpipelineError: the registry refuses.
    """
    registry = Registry.of_store(home.open())
    generation = registry.production(pipeline.name).generation
    registry.promote(
        pipeline.name, parse(artifact), "production", expect=generation, reason=_REASON, actor="ftpipeline demo"
    )


def _show(document: dict[str, Any], pipeline: Pipeline, home: Home) -> None:
    stdout.print(_table(document["cycles"]))
    for cycle in document["cycles"]:
        metrics = cycle["metrics"]
        stdout.print(
            f"{cycle['run_id']}: task macro-F1 {metrics['task']['macro_f1']:.3f}, "
            f"regression {metrics['regression']['macro_f1']:.3f}, safety {metrics['safety']['abstain_share']:.3f}, "
            f"{cycle['leaked']} leaked train rows dropped, gate: {cycle['verdict']}, registered as {cycle['stage']}"
        )
        for reason in cycle["reasons"]:
            stdout.print(f"  {reason['code']}: {reason['message']}", markup=False)
    demo_divergence.show(document["incident"])
    stdout.print(
        f"\nopen the UI, then look at the group '{pipeline.name}', and at the asset 'quarantine' for the incident:",
        markup=False,
    )
    stdout.print("  " + ui_command(home, pipeline.path, *document["incident"]["pipelines"]), markup=False)


def _table(cycles: list[dict[str, Any]]) -> Table:
    """Two weeks beside each other, narrow enough for a terminal of 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("step", no_wrap=True)
    for cycle in cycles:
        table.add_column(cycle["run_id"].partition("-")[2], no_wrap=True)
        table.add_column("digest", no_wrap=True)
        table.add_column("s", no_wrap=True, justify="right")
    steps = [{step["name"]: step for step in cycle["steps"]} for cycle in cycles]
    for name in steps[0]:
        row = [week[name] for week in steps]
        cells = [(step["action"], hex_of(step["digest"])[:8], f"{step['seconds']:.1f}") for step in row]
        table.add_row(name, *(cell for week in cells for cell in week))
    return table
