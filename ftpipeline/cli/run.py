"""`ftpipeline run`: one weekly cycle through Dagster, one line a step."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ftpipeline import pipeline as pipelines
from ftpipeline.cli.common import HomeOption, JsonOption, emit, short, stderr, stdout, stoppable
from ftpipeline.cli.show import ProgressBar, step_line
from ftpipeline.pipeline import Pipeline
from ftpipeline.records import Action, StepResult, Verdict
from ftpipeline.store.home import Home
from ftpipeline.weeks import iso_name

EXIT_CODES: Mapping[Verdict, int] = {
    Verdict.PASS: 0,
    Verdict.FIRST_RELEASE: 0,
    Verdict.ALREADY_PRODUCTION: 0,
    Verdict.FAIL: 1,
    Verdict.INCONCLUSIVE: 1,
    Verdict.REFUSED: 2,
}
"""Exit code of each verdict of the gate."""


def run(
    pipeline_file: Annotated[Path, typer.Argument(metavar="PIPELINE.yaml", show_default=False)],
    week: Annotated[
        str | None,
        typer.Option(help="2026-W40, or the date of a week's first day; the last that ended.", show_default=False),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one weekly cycle: what is known is reused, what changed is executed."""
    pipeline = pipelines.load(pipeline_file)
    with stoppable():
        document = run_document(pipeline, Home.locate(home), week, quiet=as_json)
    emit(document, as_json, lambda: _show(document, pipeline, Home.locate(home)))
    if code := EXIT_CODES[Verdict(document["verdict"])]:
        raise typer.Exit(code)


def run_document(pipeline: Pipeline, home: Home, week: str | None, *, quiet: bool) -> dict[str, Any]:
    """Run a week and return what scripts read of it; lines go to stdout unless `quiet`."""
    from ftpipeline.orchestration.run import choose_week, run_week  # Dagster is loaded by the verbs that run

    def line(stage: str, result: StepResult) -> None:
        (stderr if quiet else stdout).print(step_line(stage, result), markup=False)

    with ProgressBar() as bar:
        done = run_week(pipeline, home, choose_week(pipeline, week), line, bar)
    gate = done.stages["gate"].facts
    return {
        "run_id": f"{pipeline.name}-{iso_name(done.week)}",
        "dagster_run_id": done.run_id,
        "week": done.week.isoformat(),
        "steps": [_step(name, result) for name, result in done.stages.items()],
        "leaked": done.stages["split"].facts["leaked"],
        "metrics": _metrics(done.stages["evaluate"]),
        "verdict": gate["verdict"],
        "reasons": gate["reasons"],
        "differences": gate["differences"],
        "intervals": gate["intervals"],
        "band": gate["band"],
        "warnings": gate["warnings"],
        "stage": done.stages["register"].facts["stage"],
        "artifact": done.stages["export"].output,
    }


def _step(name: str, result: StepResult) -> dict[str, Any]:
    return {
        "name": name,
        "action": str(result.action),
        "key": result.key,
        "digest": result.output,
        "seconds": round(result.seconds, 3),
    }


def _metrics(evaluated: StepResult) -> dict[str, Any]:
    """The candidate's metrics by role: all of them, as they stand in its reports."""
    sides = evaluated.facts["evaluations"]
    return {
        key.removeprefix("candidate_"): facts["metrics"] for key, facts in sides.items() if key.startswith("candidate_")
    }


def _show(document: Mapping[str, Any], pipeline: Pipeline, home: Home) -> None:
    executed = [step for step in document["steps"] if step["action"] == Action.EXECUTED]
    stdout.print(f"{len(executed)} steps executed, {len(document['steps']) - len(executed)} reused")
    for role, metrics in document["metrics"].items():
        stdout.print(f"{role:<11}" + "  ".join(f"{name} {value:.4f}" for name, value in metrics.items()))
    stdout.print(f"gate: {document['verdict']}; {short(document['artifact'])} is registered as {document['stage']}")
    for reason in document["reasons"]:
        stdout.print(f"  {reason['code']}: {reason['message']}", markup=False)
    stdout.print("see it in the UI:", ui_command(home, pipeline.path), markup=False, sep="\n  ")


def ui_command(home: Home, *pipeline_files: Path | str) -> str:
    """Return the whole command that opens the UI on this home and these pipelines."""
    files = os.pathsep.join(str(Path(file).resolve()) for file in pipeline_files)  # it is run from any folder
    return (
        f"FTPIPELINE_HOME={home.root} DAGSTER_HOME={home.dagster_home} FTPIPELINE_PIPELINES={files} "
        f"{Path(sys.executable).with_name('dagster')} dev -m ftpipeline.definitions"
    )
