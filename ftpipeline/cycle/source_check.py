"""`source check`: reads a source as a snapshot would, for all time up to now, and says what becomes of its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ftpipeline.cycle.data import source_params, source_port, week_window
from ftpipeline.errors import InputError
from ftpipeline.pipeline import load
from ftpipeline.steps.intake import Columns, Intake, refuse, take_in
from ftpipeline.steps.row_files import RowFile
from ftpipeline.steps.row_formats import FORMATS, Dialect
from ftpipeline.steps.snapshot import read_source, require_rate
from ftpipeline.steps.windows import Window

# Names that columns of ticket exports have, most telling first.
_NAMES: Mapping[str, Sequence[str]] = {
    "id": ("ticket_id", "id", "case_id", "message_id"),
    "text": ("text", "body", "message", "description", "question"),
    "label": ("queue", "label", "category", "intent", "expected"),
    "event_time": ("created_at", "event_time", "timestamp", "created", "date"),
    "ingestion_time": ("ingested_at", "ingestion_time", "loaded_at"),
    "label_source": ("label_source", "labelled_by", "labeled_by"),
}
_GROUPS = ("customer_id", "thread_id", "account_id", "user_id", "conversation_id")


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes:
        intake: the rows.
        proposed: section `source` of a pipeline file, for a bare file; None for a pipeline.
        limit: share of the rows that the pipeline lets be rejected; None for a bare file.
    """

    intake: Intake
    proposed: Mapping[str, Any] | None = None
    limit: float | None = None

    def require_rate(self) -> None:
        """Refuse a source of which more rows are rejected than the pipeline file allows.

        Raises:
            SourceError: the share is above the limit.
        """
        if self.limit is not None:
            require_rate(self.intake, self.limit)

    def to_json(self) -> dict[str, Any]:
        """Return the check as one JSON document."""
        accepted, rejected = len(self.intake.accepted), len(self.intake.rejects)
        shown = ("line", "row", "byte_offset", "reason", "excerpt")
        document: dict[str, Any] = {
            "read": accepted + rejected,
            "accepted": accepted,
            "rejected": rejected,
            "reasons": self.intake.reasons,
            "rejects": [{name: asdict(reject)[name] for name in shown} for reject in self.intake.rejects],
        }
        return document if self.proposed is None else {**document, "source": dict(self.proposed)}


def check(path: Path, now: datetime) -> Checked:
    """Check the source of a pipeline file, or a bare file of tickets.

    Args:
        path: a pipeline file (YAML), or a CSV, JSONL or Parquet file.
        now: rows that are later are from the future.

    Raises:
        InputError: the file is neither, or the source does not fit what is declared.
        SourceUnavailableError: the source cannot be read.
    """
    ending = path.suffix.lstrip(".").lower()
    if ending in ("yaml", "yml"):
        return _check_pipeline(path, now)
    if ending in FORMATS:
        return _check_file(path, ending, now)
    raise InputError(f"{path}: is no pipeline file and no source file; give one of .yaml, {', '.join(FORMATS)}")


def _check_pipeline(path: Path, now: datetime) -> Checked:
    """Read everything that the query returns for the last week that is over."""
    pipeline = load(path)
    source = pipeline.file.source
    window = Window.up_to(now, source.naive_timezone)
    week = week_window(pipeline, pipeline.file.week.calendar.last_completed(now))
    intake = read_source(source_port(pipeline).load(), {**source_params(source), **week}, window)
    return Checked(intake, limit=source.max_reject_rate)


def _check_file(path: Path, form: str, now: datetime) -> Checked:
    file = RowFile(path, Dialect(form))
    columns = propose(file.read().table.column_names, path)
    rows = file.read(columns.named())
    intake = take_in(rows.table, columns, Window.up_to(now, None), rows.places)
    refuse(intake, rows.malformed)
    parts = {name: value for name, value in asdict(columns).items() if value}
    return Checked(intake, {"file": {"path": path.name, "format": form, "encoding": "utf-8"}, "columns": parts})


def propose(names: Sequence[str], path: Path) -> Columns:
    """Return which column probably plays which part, by its name.

    Raises:
        InputError: no column can be the text.
    """
    found = {part: next((name for name in usual if name in names), None) for part, usual in _NAMES.items()}
    text = found["text"]
    if text is None:
        raise InputError(
            f"{path}: none of its columns ({', '.join(names)}) is called {', '.join(_NAMES['text'])}; "
            "declare source.file and source.columns in a pipeline file and check that"
        )
    return Columns(
        id=found["id"],
        text=text,
        label=found["label"],
        event_time=found["event_time"],
        ingestion_time=found["ingestion_time"],
        label_source=found["label_source"],
        groups=[name for name in _GROUPS if name in names],
    )
