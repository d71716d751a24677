"""The rows that the data steps hand to each other, one dataclass a file."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """One accepted row of the source.

    Attributes:
        id: the source's id, as text.
        text: the text as the source holds it.
        label: the label as the source spells it.
        label_source: who gave the label; None where the source does not say.
        event_time: UTC.
        groups: one `<column>=<value>` for every group column that has a value, in the declared order.
    """

    id: str
    text: str
    label: str
    label_source: str | None
    event_time: datetime
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reject:
    """One row that was read and refused.

    Attributes:
        id: the row's id, empty where it has none.
        reason: stable name of the rule.
        text_length: characters of the refused text.
        line: line of the file that the row starts on, from 1; None where the source has no lines.
        row: place among the file's rows, from 1; None where the source has no order.
        byte_offset: bytes of the file in front of that line; None where the source has no lines.
        excerpt: start of the text, or of the line that could not be read, with personal data replaced.
        groups: the row's group keys, so that an erasure finds it.
    """

    id: str
    reason: str
    text_length: int
    line: int | None
    row: int | None
    byte_offset: int | None
    excerpt: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CuratedRow:
    """One text to learn from, and every source row it stands for.

    Attributes:
        id: smallest id of the members.
        text: the cleaned text of that member.
        label: a label of the declared list, spelled as there.
        event_time: UTC, of the member `id`.
        groups: union of the members' group keys, sorted.
        members: ids of all rows it stands for, sorted.
    """

    id: str
    text: str
    label: str
    event_time: datetime
    groups: tuple[str, ...]
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """A cleaned text that a curated row stands for and that differs from the row's own.

    Attributes:
        id: id of the curated row.
        text: the member's cleaned text.
    """

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class EvalRow:
    """One question of an eval set, as it stands in its file, with the answer that is expected."""

    id: str
    text: str
    expected: str


@dataclass(frozen=True, slots=True)
class Leak:
    """One curated row that gives away one eval row.

    Attributes:
        eval_set: role of the eval set, or `validation`.
        eval_row: id of the eval row.
        split: the split that the curated row was assigned to, and is dropped from.
        train_id: id of the curated row.
        score: share of the eval row found in it, in (0, 1].
        rule: `equal`, `containment`, `short` or `characters`, as the leakage check names them.
        members: the source rows behind the curated row.
    """

    eval_set: str
    eval_row: str
    split: str
    train_id: str
    score: float
    rule: str
    members: tuple[str, ...]
