"""The verb that checks two files for leaks, without a pipeline."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ftpipeline.cli.common import JsonOption, emit, stdout
from ftpipeline.steps.leakage import EXACT, METHODS, NO_ROW, RULES, Hit
from ftpipeline.steps.leakage.check import Findings, find_best
from ftpipeline.steps.leakage.columns import read_column, read_strings

_SHOWN = 20
"""Hits that a person is shown; a script gets all of them."""


def leakage(
    train: Annotated[Path, typer.Argument(help="Training rows: a CSV, JSONL or Parquet file.", show_default=False)],
    evals: Annotated[Path, typer.Argument(metavar="EVAL", help="Eval rows, likewise.", show_default=False)],
    column: Annotated[str, typer.Option(help="Column of the texts in both files.")] = "text",
    threshold: Annotated[float, typer.Option(help="Least share of an eval row that must be found.")] = 0.5,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = EXACT,
    as_json: JsonOption = False,
) -> None:
    """Find eval rows in training rows; the exit code is 1 if there are any."""
    wanted = read_strings(evals, column)
    findings = find_best(read_column(train, column), wanted, threshold, method)
    document = {
        "method": method,
        "threshold": threshold,
        "train_rows": findings.train_rows,
        "eval_rows": len(wanted),
        "leaked": [_entry(hit) for hit in findings.hits],
    }
    emit(document, as_json, lambda: _show(findings, len(wanted)))
    if findings.hits:
        raise typer.Exit(1)


def _entry(hit: Hit) -> dict[str, Any]:
    train_row = None if hit.train_row == NO_ROW else hit.train_row
    return {"eval_row": hit.eval_row, "train_row": train_row, "score": hit.score, "rule": hit.rule}


def _show(findings: Findings, eval_rows: int) -> None:
    """Show how many rows leak by which rule, and the first of them; rows are counted from 0, as in JSON."""
    by_rule = Counter(hit.rule for hit in findings.hits)
    rules = ", ".join(f"{rule} {by_rule[rule]}" for rule in RULES if by_rule[rule])
    counts = f"{len(findings.hits)} of {eval_rows} eval rows are found in {findings.train_rows} training rows"
    stdout.print(f"{counts} ({rules})" if rules else counts)
    if not findings.hits:
        return
    table = Table("eval row", "training row", "score", "rule")
    for hit in findings.hits[:_SHOWN]:
        table.add_row(*(str(value) if value is not None else "none" for value in _entry(hit).values()))
    stdout.print(table)
    if len(findings.hits) > _SHOWN:
        stdout.print(f"and {len(findings.hits) - _SHOWN} more; --json prints all")
