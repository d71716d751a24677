"""`ftpipeline detect`: the detector alone, on any metrics file."""

from pathlib import Path
from typing import Annotated

import typer

from ftpipeline.cli.common import JsonOption, emit, stderr, stdout
from ftpipeline.errors import InputError
from ftpipeline.guard.detect import detect as judge
from ftpipeline.guard.metric_lines import MetricsRead
from ftpipeline.guard.metrics_file import read_metrics
from ftpipeline.guard.points import Event, EventKind
from ftpipeline.guard.verdicts import Detection, Stage

_SHOWN = 10  # bad lines that are named; all are counted


def detect(
    metrics: Annotated[
        Path, typer.Argument(help="JSON lines, a trainer_state.json, or CSV with a header.", show_default=False)
    ],
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            metavar="KIND@STEP",
            help=f"A declared change: {', '.join(EventKind)}. May be given more than once.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell whether a training run is healthy, suspect, diverged, or too short to say (exit 1 unless healthy)."""
    read = read_metrics(metrics)
    detection = judge(read.points, events=(*read.events, *map(_event, event or [])))
    document = detection.to_json() | {
        "points": len(read.points),
        "bad_lines": len(read.bad_lines),
        "bad": [{"line": bad.line, "reason": bad.reason} for bad in read.bad_lines[:_SHOWN]],
        "ignored_lines": read.ignored,
        "unread_bytes": read.waiting,
    }
    emit(document, as_json, lambda: _show(metrics, detection))
    _warn(read)
    if detection.stage is not Stage.HEALTHY:
        raise typer.Exit(1)


def _event(text: str) -> Event:
    kind, _, step = text.partition("@")
    try:
        return Event(int(step), EventKind(kind))
    except ValueError:
        raise InputError(f"--event {text!r} is not KIND@STEP, for example {EventKind.MIXTURE_SWITCH}@120") from None


def _show(metrics: Path, detection: Detection) -> None:
    stdout.print(f"{metrics}: [bold]{detection.stage.value}[/] after {detection.steps} steps")
    if detection.onset_step is not None:
        good = "none" if detection.last_good_step is None else f"step {detection.last_good_step}"
        stdout.print(f"  detected at step {detection.detected_step}, onset {detection.onset_step}, last good: {good}")
    for item in detection.evidence:
        declared = f", declared: {item.event}" if item.event else ""
        compared = f"{item.metric} {item.value:.4g} against {item.limit:.4g}"
        stdout.print(f"  step {item.step}: {item.level.value}, {item.kind.value}: {compared}{declared}", markup=False)


def _warn(read: MetricsRead) -> None:
    for bad in read.bad_lines[:_SHOWN]:
        stderr.print(f"line {bad.line} not used: {bad.reason}", markup=False)
    if len(read.bad_lines) > _SHOWN:
        stderr.print(f"{len(read.bad_lines)} lines not used in all")
    if read.waiting:
        stderr.print(f"{read.waiting} bytes after the last newline not read")
