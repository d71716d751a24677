"""The verb that gates two reports, without a pipeline: the same function that decides in a weekly run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ftpipeline.cli.common import JsonOption, emit, stdout
from ftpipeline.cli.run import EXIT_CODES
from ftpipeline.errors import InputError
from ftpipeline.schema import load_yaml
from ftpipeline.steps.gate_decision import UNMEASURED, GateDecision, decide
from ftpipeline.steps.gate_files import answers_by_role
from ftpipeline.steps.gate_reports import Report
from ftpipeline.steps.paired import Pairs

_CURE = "give the file that the evaluation wrote"


def gate(
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE.json", help="Its report.", show_default=False)],
    production: Annotated[
        Path,
        typer.Argument(metavar="PRODUCTION.json", help="Likewise; null for a first release.", show_default=False),
    ],
    gates: Annotated[Path, typer.Option(help="YAML with the three thresholds, alone or under 'gates'.")],
    pairs: Annotated[
        Path | None, typer.Option(help="Answers of both, pairs.json of a report.", show_default=False)
    ] = None,
    band: Annotated[
        Path | None, typer.Option(help="Noise band, band.json of a noise_band.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a candidate's report with production's (exit 0 to promote, 1 against, 2 if they cannot be compared)."""
    decision = decide(
        _report(candidate),
        None if (document := _read(production)) is None else _mapping(production, document),
        _thresholds(gates),
        answers=None if pairs is None else _answers(pairs),
        seed_scores=None if band is None else _seed_scores(band),
    )
    emit(decision.to_json(), as_json, lambda: _show(decision))
    if code := EXIT_CODES[decision.verdict]:
        raise typer.Exit(code)


def _report(path: Path) -> Report:
    return _mapping(path, _read(path))


def _read(path: Path) -> Any:
    """Return a JSON document; a NaN in it is read, so that the gate can refuse it by name.

    Raises:
        InputError: the file cannot be read, is not JSON, or holds a key twice.
    """
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=_once)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); {_CURE}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice")
    return document


def _mapping(path: Path, document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise InputError(f"{path}: holds no JSON object; {_CURE}")
    return document


def _thresholds(path: Path) -> Mapping[str, Any]:
    document = load_yaml(path, InputError)
    inner = document.get("gates", document)
    return inner if isinstance(inner, Mapping) else document


def _answers(path: Path) -> Mapping[str, Pairs]:
    return answers_by_role(_mapping(path, _read(path)))


def _seed_scores(path: Path) -> Mapping[str, Any]:
    try:
        return {role: [*map(float, item["scores"])] for role, item in _mapping(path, _read(path))["roles"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: holds no scores by seed ({error!r}); give band.json of a noise_band") from error


def _show(decision: GateDecision) -> None:
    stdout.print(f"gate: [bold]{decision.verdict}[/], band: {'measured' if decision.bands else UNMEASURED}")
    if decision.differences:
        table = Table("eval set", "difference", "95 % interval")
        for role, difference in decision.differences.items():
            interval = decision.intervals.get(role)
            table.add_row(role, difference, "" if interval is None else f"{interval.low:+.4f} to {interval.high:+.4f}")
        stdout.print(table)
    for reason in decision.reasons:
        stdout.print(f"  {reason.code}: {reason.message}", markup=False)
    for warning in decision.warnings:
        stdout.print(f"  warning: {warning.message}", markup=False)
