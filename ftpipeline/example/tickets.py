"""Writes the example's data: a DuckDB file of tickets, three eval sets and the label list.

Everything is synthetic and follows from the seed: the same seed gives the same rows. The eval sets and the label list
depend on the seed alone, not on how long the history is.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from ftpipeline.errors import InputError, StoreError
from ftpipeline.example.evalsets import EvalRow, gold_rows, regression_rows, safety_rows
from ftpipeline.example.export import Ticket
from ftpipeline.example.history import write_history
from ftpipeline.example.queues import load_queues


@dataclass(frozen=True)
class GeneratedExample:
    """What was written.

    Attributes:
        tickets: DuckDB file with the table `tickets`.
        gold: CSV with id, text and queue.
        regression: CSV with id, text and queue.
        safety: CSV with id, text and expected, which is always `abstain`.
        labels: text file, one queue a line, sorted.
        ticket_count: rows of the table.
        leak_count: tickets that copy a gold text on purpose.
        gold_count: rows of the gold set.
        regression_count: rows of the regression set.
        safety_count: rows of the safety set.
        label_count: queues.
    """

    tickets: Path
    gold: Path
    regression: Path
    safety: Path
    labels: Path
    ticket_count: int
    leak_count: int
    gold_count: int
    regression_count: int
    safety_count: int
    label_count: int


def generate(folder: Path, *, seed: int = 7, per_week: int = 260, weeks: int = 26) -> GeneratedExample:
    """Write the example's data into `folder`, in place of what an earlier call wrote there.

    Args:
        folder: made if it does not stand yet.
        seed: decides everything.
        per_week: tickets a week.
        weeks: length of the history, which ends on 2026-11-16 at 00:00 UTC.

    Raises:
        InputError: `per_week` or `weeks` is below 1.
        StoreError: the folder cannot be written.
    """
    if per_week < 1 or weeks < 1:
        raise InputError(f"per_week={per_week} and weeks={weeks} make no history; both must be at least 1")
    queues = load_queues()
    by_name = {queue.name: queue for queue in queues}
    gold = gold_rows(_stream(seed, "gold"), queues)
    regression = regression_rows(_stream(seed, "regression"), queues)
    safety = safety_rows(_stream(seed, "safety"))
    leakable = [(text, by_name[name]) for _, text, name in gold]
    history = write_history(_stream(seed, "tickets"), queues, leakable, per_week=per_week, weeks=weeks)
    example = GeneratedExample(
        tickets=folder / "tickets.duckdb",
        gold=folder / "gold_v1.csv",
        regression=folder / "regression_v1.csv",
        safety=folder / "safety_v1.csv",
        labels=folder / "labels.txt",
        ticket_count=len(history.tickets),
        leak_count=history.leaks,
        gold_count=len(gold),
        regression_count=len(regression),
        safety_count=len(safety),
        label_count=len(queues),
    )
    with _replacing(folder) as stage:
        _write_tickets(stage / example.tickets.name, history.tickets)
        _write_csv(stage / example.gold.name, ("id", "text", "queue"), gold)
        _write_csv(stage / example.regression.name, ("id", "text", "queue"), regression)
        _write_csv(stage / example.safety.name, ("id", "text", "expected"), safety)
        (stage / example.labels.name).write_text("".join(f"{queue.name}\n" for queue in queues), encoding="utf-8")
    return example


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Yield a folder whose files are moved into `folder` once all of them are written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as partial:
            yield Path(partial)
            for path in sorted(Path(partial).iterdir()):
                path.replace(folder / path.name)
    except OSError as error:
        raise StoreError(
            f"the example cannot be written to {folder} ({error}); name a folder with free space"
        ) from error


def _stream(seed: int, part: str) -> Random:
    """Return a generator of its own for each part, so that one part's length does not change another."""
    return Random(f"{seed} {part}")


def _write_tickets(path: Path, tickets: Sequence[Ticket]) -> None:
    import duckdb
    import pyarrow as pa

    moment = pa.timestamp("us", tz="UTC")
    columns = {
        field.name: pa.array(
            [getattr(ticket, field.name) for ticket in tickets],
            type=moment if field.type is datetime else pa.string(),
        )
        for field in fields(Ticket)
    }
    try:
        with duckdb.connect(str(path)) as connection:
            connection.register("generated", pa.table(columns))
            connection.execute("CREATE TABLE tickets AS SELECT * FROM generated ORDER BY ticket_id")
    except duckdb.Error as error:
        raise StoreError(
            f"tickets cannot be written to {path.name} ({error}); name a folder with free space"
        ) from error


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[EvalRow]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
