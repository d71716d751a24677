"""Which curated rows are one group, and the side of each group.

Law: a group's side is a function of its own name, the fraction and the seed, so rows that come or go move no group that
keeps its name. No rule can do without exceptions: any two groups must be split somehow, and of three groups two share
a side. Every group that an exception puts elsewhere, or may move one day, is counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ftpipeline.errors import EmptyResultError, PipelineFileError
from ftpipeline.steps.duplicates import near_duplicates
from ftpipeline.steps.groups import components, held_out, is_held_out
from ftpipeline.steps.leaks import TRAIN, VALIDATION
from ftpipeline.steps.rows import CuratedRow

_RESEMBLANCE = 0.6  # of rows without a key: under curation's, which has joined what is nearly equal already


@dataclass(frozen=True)
class Assignment:
    """The side of every row.

    Attributes:
        sides: row id to split.
        groups: indices of the rows of each group.
        joined_across: groups that tie keys together which alone would be on both sides: the oldest row leads them, so
            they move when they are tied, or when it leaves the window.
        forced: groups that are elsewhere than their name says, because a side would be empty or most rows held out:
            they move back when there are other groups.
    """

    sides: Mapping[str, str]
    groups: Sequence[Sequence[int]]
    joined_across: int
    forced: int


def assign(rows: Sequence[CuratedRow], fraction: float, seed: int) -> Assignment:
    """Assign whole groups.

    Args:
        rows: the curated rows.
        fraction: share of the groups to hold out, in (0, 1).
        seed: another seed gives another choice.

    Raises:
        EmptyResultError: there is but one group.
        PipelineFileError: the fraction is out of its range.
    """
    groups = _tied(rows)
    _require_groups(groups)
    if not 0 < fraction < 1:
        raise PipelineFileError(f"split.validation_fraction is {fraction}; give a share between 0 and 1")
    names = [_names([rows[index] for index in group]) for group in groups]
    chosen = held_out([own[0] for own in names], [len(group) for group in groups], fraction, seed)
    sides = {
        rows[index].id: VALIDATION if position in chosen else TRAIN
        for position, group in enumerate(groups)
        for index in group
    }
    forced = sum(is_held_out(own[0], fraction, seed) != (place in chosen) for place, own in enumerate(names))
    across = sum(len({is_held_out(name, fraction, seed) for name in own}) > 1 for own in names)
    return Assignment(sides, groups, across, forced)


def _tied(rows: Sequence[CuratedRow]) -> list[list[int]]:
    """Return the groups: rows that share a key, and rows without any key whose texts resemble each other.

    A missing key ties nobody to a stranger; but one ticket that was exported twice without its key must not be split.
    """
    keys = [list(row.groups) for row in rows]
    keyless = [index for index, row in enumerate(rows) if not row.groups]
    for alike in near_duplicates([rows[index].text for index in keyless], _RESEMBLANCE):
        for position in alike:
            keys[keyless[position]].append(f"\0{alike[0]}")  # no source value holds a NUL
    return components(keys)


def _names(group: Sequence[CuratedRow]) -> list[str]:
    """Return the names that the parts of a group would have alone; the group has the first.

    A row's name is its key in its first column, by the column's name, or its id where it has no key. In most groups all
    rows have one name, and keep it whatever rows and further keys come or go. In others the first column leads, and
    within it the oldest row.
    """
    oldest_first = sorted(group, key=lambda row: (row.event_time, row.id))
    if not oldest_first[0].groups:
        return [row.id for row in oldest_first]
    return sorted(dict.fromkeys(key for row in oldest_first for key in _own(row.groups)), key=_column)


def _own(keys: Sequence[str]) -> list[str]:
    first = min(map(_column, keys))
    return [key for key in keys if _column(key) == first]


def _column(key: str) -> str:
    return key.partition("=")[0]


def _require_groups(groups: Sequence[Sequence[int]]) -> None:
    if len(groups) < 2:
        raise EmptyResultError(
            f"the group keys tie all {len(groups[0]) if groups else 0} rows into one group, which cannot be split; "
            "check source.columns.groups for a value that rows of strangers share, and name it in source.missing_keys"
        )
