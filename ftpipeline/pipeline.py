"""The pipeline file: what a user declares once and retrains from every week.

Relative paths in it are relative to the file. The shared sections (`train`, `export`, `gates`, ...) are those of the
manifest, which is this file plus everything that a week pins.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from ftpipeline.cron import is_cron
from ftpipeline.errors import PipelineFileError
from ftpipeline.schema import (
    Abstention,
    Checkpoints,
    Evaluation,
    Export,
    Gates,
    Identifier,
    Name,
    Positive,
    Revision,
    Section,
    Share,
    Task,
    Texts,
    Train,
    load_yaml,
    require_prompt_is_asked,
    validate,
)
from ftpipeline.weeks import DAYS, Calendar

PIPELINES_VARIABLE = "FTPIPELINE_PIPELINES"
ABSTAIN = "abstain"
"""The answer of a classifier that is not confident; never a label."""


class Week(Section):
    """Which weeks there are."""

    timezone: str = "UTC"
    starts: Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] = "monday"
    first: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = "2024-01-01"

    @property
    def calendar(self) -> Calendar:
        """Return the calendar of these weeks."""
        return Calendar(self.timezone, self.starts)

    @model_validator(mode="after")
    def _first_is_a_first_day(self) -> Self:
        try:
            day = date.fromisoformat(self.first)
        except ValueError:
            raise ValueError(f"first: {self.first!r} is no date") from None
        if day.weekday() != DAYS.index(self.starts):
            raise ValueError(f"first: {self.first} is no {self.starts}; give the date of a week's first day")
        return self


class Schedule(Section):
    """When the week that just ended is retrained."""

    cron: str = "0 4 * * 1"
    timezone: str = "UTC"

    @field_validator("cron")
    @classmethod
    def _cron_has_five_fields(cls, cron: str) -> str:
        if not is_cron(cron):
            raise ValueError(f"{cron!r} is no cron schedule; give five fields, such as '0 4 * * 1' for Mondays at 4:00")
        return cron

    @field_validator("timezone")
    @classmethod
    def _timezone_is_known(cls, timezone: str) -> str:
        try:
            ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"no time zone {timezone!r}; give an IANA name such as Europe/Berlin or UTC") from None
        return timezone


class BaseModelSource(Section):
    """Where the base model comes from.

    `source` is `package://<module>/<folder>`, `folder://<path>` or `hub://<org>/<repository>`; the revision is a
    content hash for the first two and a commit for a hub. A folder's may be left out: its bytes are hashed every run.
    """

    name: Name
    source: Annotated[str, Field(pattern=r"^(package|folder|hub)://\S+$")]
    revision: Revision | None = None

    @model_validator(mode="after")
    def _revision_fits_the_source(self) -> Self:
        if self.kind == "hub" and (self.revision is None or ":" in self.revision):
            raise ValueError("revision: a hub model is pinned by the full 40 hexadecimal digits of its commit")
        if self.kind != "hub" and self.revision is not None and ":" not in self.revision:
            raise ValueError("revision: a packaged or local model is pinned by its content hash, 'sha256:<64 hex>'")
        if self.kind == "package" and self.revision is None:
            raise ValueError("revision is missing; a packaged model is pinned by its tree digest 'sha256:<64 hex>'")
        return self

    @property
    def kind(self) -> str:
        """Return package, folder or hub."""
        return self.source.partition("://")[0]

    @property
    def location(self) -> str:
        """Return what follows `://`."""
        return self.source.partition("://")[2]


class Columns(Section):
    """Which column of the query plays which part."""

    id: str
    text: str
    label: str
    event_time: str
    ingestion_time: str | None = None
    label_source: str | None = None
    groups: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    missing_keys: Texts = ()


class Postgres(Section):
    """A named connection; its URL, with the password, stands in the environment variable and nowhere else."""

    name: Name
    url_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class SourceFile(Section):
    """A file of tickets and how it is written; the format is the file's ending unless it is given."""

    path: Annotated[str, Field(min_length=1)]
    format: Literal["csv", "jsonl", "parquet"] | None = None
    encoding: str = "utf-8"
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    quote: Annotated[str, Field(min_length=1, max_length=1)] = '"'

    @model_validator(mode="after")
    def _format_is_known(self) -> Self:
        if self.form not in ("csv", "jsonl", "parquet"):
            raise ValueError(f"format: {self.form!r} is no format of a source file; give csv, jsonl or parquet")
        return self

    @property
    def form(self) -> str:
        """Return the format."""
        return self.format or Path(self.path).suffix.lstrip(".").lower()


class Source(Section):
    """A database with its query, or a file.

    The window is bound around the query, and named in it as $window_start, $window_end and $cut.
    """

    duckdb: Annotated[str, Field(min_length=1)] | None = None
    postgres: Postgres | None = None
    file: SourceFile | None = None
    query: Annotated[str, Field(min_length=1)] | None = None
    parameters: dict[str, str | int | float | bool] = Field(default_factory=dict)
    window_days: Annotated[int, Field(ge=7, le=3660)] = 90
    naive_timezone: str | None = None
    max_reject_rate: Share = 0.1
    columns: Columns

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if [self.duckdb, self.postgres, self.file].count(None) != 2:
            raise ValueError("give one of duckdb, postgres and file")
        if (self.file is None) == (self.query is None):
            raise ValueError("query is missing; add it" if self.file is None else "a file has no query; remove it")
        return self

    @property
    def connection(self) -> str:
        """Return what the place is called in records; never a secret."""
        if self.postgres is not None:
            return f"postgres://{self.postgres.name}"
        return str(self.duckdb) if self.file is None else f"file://{self.file.path}"

    @property
    def asked(self) -> str:
        """Return the query, or what names the file."""
        return self.connection if self.query is None else self.query


_Language = Literal["da", "de", "en", "es", "fr", "it", "nl", "no", "pl", "pt", "sv"]


class Curate(Section):
    """What is kept of a snapshot."""

    human_sources: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] | None = None
    near_duplicates: Annotated[float, Field(gt=0.0, le=1.0)] = 0.8
    normalise_labels: Literal["strip", "nfkc_casefold"] = "strip"
    languages: Annotated[tuple[_Language, ...], Field(strict=False, min_length=1)] = get_args(_Language)


class Leakage(Section):
    """What counts as a leak, and what is done about it."""

    threshold: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5
    policy: Literal["drop", "fail"] = "drop"


class Split(Section):
    """How whole groups are assigned."""

    validation_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    seed: Annotated[int, Field(ge=0)] = 0
    missing_classes: Literal["report", "fail"] = "report"
    forced_sides: Literal["report", "fail"] = "report"
    leakage: Leakage = Leakage()


class EvalColumns(Section):
    """Which column of an eval set plays which part."""

    id: str = "id"
    text: str = "text"
    expected: str = "expected"


class EvalSet(Section):
    """A versioned eval set in a CSV, JSONL or Parquet file."""

    name: Name
    version: Annotated[str, Field(pattern=r"^v[0-9]+$")]
    file: Annotated[str, Field(min_length=1)]
    columns: EvalColumns = EvalColumns()


class EvalSets(Section):
    """The three sets of every gate.

    Attributes:
        schedule: when new versions are frozen, and production and the last candidates scored on them.
    """

    task: EvalSet
    regression: EvalSet
    safety: EvalSet
    schedule: Schedule = Schedule(cron="0 2 1 * *")

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        """Versions are kept by name, and a leak is reported by the name of its set."""
        roles: dict[str, str] = {}
        for role, eval_set in self.by_role().items():
            if (other := roles.setdefault(eval_set.name, role)) != role:
                raise ValueError(f"{other} and {role} are both named {eval_set.name!r}; give each set its own name")
        return self

    def by_role(self) -> Mapping[str, EvalSet]:
        """Return the sets by role."""
        return {"task": self.task, "regression": self.regression, "safety": self.safety}


class Release(Section):
    """How a candidate gets on.

    Attributes:
        automatic: last stage that a candidate whose gate passed is moved to without a person; None where a person moves
            every one. A first release always waits for a person.
        rescored: how many of the newest candidates are scored again on a new version of an eval set.
    """

    automatic: Literal["shadow", "canary", "production"] | None = None
    rescored: Positive = 3


class PipelineFile(Section):
    """The schema of a pipeline file."""

    name: Identifier
    week: Week = Week()
    schedule: Schedule = Schedule()
    base_model: BaseModelSource
    source: Source
    labels: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    labels_file: str | None = None
    curate: Curate = Curate()
    split: Split = Split()
    eval_sets: EvalSets
    task: Task = "sequence_classification"
    train: Train
    checkpoints: Checkpoints = Checkpoints()
    export: Export = Export()
    abstention: Abstention = Abstention()
    evaluation: Evaluation = Evaluation()
    gates: Gates
    release: Release = Release()
    isolation: Literal["best", "enforced"] = "best"

    @model_validator(mode="after")
    def _prompt_is_asked(self) -> Self:
        require_prompt_is_asked(self.task, self.train)
        return self

    @model_validator(mode="after")
    def _one_label_list(self) -> Self:
        if (self.labels is None) == (self.labels_file is None):
            raise ValueError("give either labels or labels_file")
        return self


@dataclass(frozen=True)
class Pipeline:
    """A pipeline file that was read, with its place and its labels.

    Attributes:
        path: absolute path of the file.
        file: its content.
        labels: the closed label list; its order defines the class ids.
    """

    path: Path
    file: PipelineFile
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the pipeline's name."""
        return self.file.name

    def resolve(self, text: str) -> Path:
        """Return a path of the file, relative ones against its folder."""
        return (self.path.parent / text).resolve()


def load(path: Path) -> Pipeline:
    """Read a pipeline file and its label list.

    Raises:
        PipelineFileError: it cannot be used as written; every fault is named on one line.
    """
    path = path.resolve()
    file = validate(PipelineFile, load_yaml(path, PipelineFileError), str(path), PipelineFileError)
    file.week.calendar.zone()
    labels = file.labels if file.labels is not None else _read_labels(path.parent / str(file.labels_file))
    _check_labels(labels, path)
    return Pipeline(path, file, labels)


def from_environment() -> tuple[Path, ...]:
    """Return the pipeline files named in FTPIPELINE_PIPELINES, separated as in PATH."""
    return tuple(Path(part) for part in os.environ.get(PIPELINES_VARIABLE, "").split(os.pathsep) if part)


def _read_labels(path: Path) -> tuple[str, ...]:
    """Read a label list: a text file with one label a line, or a JSON list of texts."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineFileError(f"labels_file: {path} cannot be read ({error}); check the path") from error
    if path.suffix != ".json":
        return tuple(line for line in text.splitlines() if line.strip())
    import json

    try:
        labels: Any = json.loads(text)
    except ValueError as error:
        raise PipelineFileError(f"labels_file: {path} is not JSON ({error}); write a list of texts") from error
    if not isinstance(labels, list):
        raise PipelineFileError(f"labels_file: {path} holds no list; write a list of texts")
    return tuple(labels)


def _check_labels(labels: tuple[Any, ...], path: Path) -> None:
    wrong = [label for label in labels if not isinstance(label, str) or not label.strip()]
    if wrong:
        raise PipelineFileError(f"{path}: labels: {wrong[0]!r} is not usable text; quote it")
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise PipelineFileError(f"{path}: labels: {repeated[0]!r} stands twice; list each label once")
    if ABSTAIN in labels:
        raise PipelineFileError(f"{path}: labels: {ABSTAIN!r} is the answer under the threshold; rename the label")
    if len(labels) < 2:
        raise PipelineFileError(f"{path}: labels: a classifier needs at least two; found {len(labels)}")
