"""Adding a week never moves a group, but for the exceptions that no rule can do without, each of which is counted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import EmptyResultError, PipelineFileError
from ftpipeline.steps.assignment import Assignment, assign
from ftpipeline.steps.groups import is_held_out
from ftpipeline.steps.rows import CuratedRow
from ftpipeline_tests.steps.data_steps import run_split

FRACTION, SEED = 0.3, 0
START = datetime(2026, 7, 6, tzinfo=UTC)

Keys = tuple[int | None, int | None]  # customer and thread of a row


def _row(week: int, n: int, keys: Keys) -> CuratedRow:
    named = {"customer": keys[0], "thread": keys[1]}
    groups = tuple(f"{column}={key}" for column, key in named.items() if key is not None)
    text = " ".join(f"w{week}n{n}i{i}" for i in range(4))
    return CuratedRow(
        f"T{week:02}-{n:03}", text, "billing", START + timedelta(days=7 * week, minutes=n), groups, ("T",)
    )


def _assigned(rows: Sequence[CuratedRow]) -> Assignment:
    return assign(rows, FRACTION, SEED)


keys = st.tuples(st.one_of(st.none(), st.integers(0, 12)), st.one_of(st.none(), st.integers(0, 12)))
weeks_of_keys = st.lists(st.lists(keys, min_size=1, max_size=8), min_size=2, max_size=5)


@given(weeks=weeks_of_keys, span=st.integers(1, 4), strangers=st.integers(0, 30))
def test_a_window_that_moves_on_moves_no_group_but_those_that_are_counted(
    weeks: list[list[Keys]], span: int, strangers: int
) -> None:
    rows = [_row(week, n, given) for week, week_keys in enumerate(weeks) for n, given in enumerate(week_keys)]
    rows += [_row(week, 100 + n, (1000 + n, None)) for week in range(len(weeks)) for n in range(strangers)]
    for last in range(1, len(weeks)):
        views = [[row for row in rows if end - span < _week(row) <= end] for end in (last - 1, last)]
        if all(len(_groups(view)) > 1 for view in views):
            _nothing_moves(*views)


def _week(row: CuratedRow) -> int:
    return (row.event_time - START).days // 7


def _nothing_moves(before: Sequence[CuratedRow], after: Sequence[CuratedRow]) -> None:
    one, other = _assigned(before), _assigned(after)
    moved = {ident for ident in one.sides.keys() & other.sides.keys() if one.sides[ident] != other.sides[ident]}
    if one.forced or other.forced:
        return
    joints = [group for view in (before, after) for group in _groups(view) if _is_across(group)]
    assert moved <= {row.id for group in joints for row in group}


def _is_across(group: Sequence[CuratedRow]) -> bool:
    """Tell whether the parts of a group would be on both sides if nothing tied them."""
    return len({is_held_out(name, FRACTION, SEED) for name in _parts(group)}) > 1


def _parts(group: Sequence[CuratedRow]) -> set[str]:
    return {min(row.groups, default=row.id) for row in group}


def _groups(rows: Sequence[CuratedRow]) -> list[list[CuratedRow]]:
    """Return each component, found in the slowest way."""
    groups: list[tuple[set[str], list[CuratedRow]]] = []
    for row in rows:
        tied = [group for group in groups if group[0] & set(row.groups)]
        groups = [group for group in groups if group not in tied]
        members = [row, *(member for group in tied for member in group[1])]
        groups.append(({*row.groups, *(key for group in tied for key in group[0])}, members))
    return [members for _, members in groups]


customers = st.lists(st.integers(0, 8), min_size=1, max_size=25)


@given(once=customers, again=customers)
def test_a_group_of_one_customer_has_one_side_in_every_window_unless_it_is_forced(
    once: list[int], again: list[int]
) -> None:
    sides: list[Mapping[str, str]] = []
    for week, window in enumerate((once, again)):
        rows = [_row(week, n, (customer, 100 + n)) for n, customer in enumerate([*window, 20 + week])]
        assignment = _assigned(rows)
        assert assignment.joined_across == 0
        own = {row.groups[0]: assignment.sides[row.id] for row in rows}
        sides.append({} if assignment.forced else own)
    both = sides[0].keys() & sides[1].keys()
    assert {key: sides[0][key] for key in both} == {key: sides[1][key] for key in both}


@given(weeks=weeks_of_keys)
def test_the_counted_exceptions_are_the_groups_that_are_elsewhere_than_their_parts(weeks: list[list[Keys]]) -> None:
    rows = [_row(week, n, given) for week, week_keys in enumerate(weeks) for n, given in enumerate(week_keys)]
    groups = _groups(rows)
    if len(groups) < 2:
        return
    assignment = _assigned(rows)
    assert assignment.joined_across == sum(map(_is_across, groups))
    strays = [group for group in groups if not _is_across(group) and _stray(group, assignment)]
    assert len(strays) <= assignment.forced <= len(strays) + assignment.joined_across


def _stray(group: Sequence[CuratedRow], assignment: Assignment) -> bool:
    by_name = is_held_out(min(_parts(group)), FRACTION, SEED)
    return (assignment.sides[group[0].id] == "validation") != by_name


@given(weeks=weeks_of_keys, late=keys)
def test_a_late_row_of_a_known_customer_moves_nothing(weeks: list[list[Keys]], late: Keys) -> None:
    rows = [_row(1 + week, n, given) for week, week_keys in enumerate(weeks) for n, given in enumerate(week_keys)]
    customer = next((given[0] for week in weeks for given in week if given[0] is not None), None)
    if customer is None or len(_groups(rows)) < 2:
        return
    before = _assigned(rows)
    after = _assigned([*rows, replace(_row(0, 0, (customer, None)), id="LATE")])
    if not (before.forced or after.forced or before.joined_across):
        assert after.sides == {**before.sides, "LATE": after.sides["LATE"]}


def test_what_is_forced_is_told_or_refused_by_policy(tmp_path: Path) -> None:
    named = [key for key in range(1000) if not is_held_out(f"customer={key}", FRACTION, SEED)][:3]
    rows = [_row(0, n, (key, None)) for n, key in enumerate(named)]
    _, facts = run_split(rows, tmp_path / "report", validation_fraction=FRACTION)
    assert facts["groups"] == {"count": 3, "largest": 1, "joined_across": 0, "forced": 1}
    with pytest.raises(EmptyResultError, match="1 groups cannot be on the side of their name"):
        run_split(rows, tmp_path / "fail", validation_fraction=FRACTION, forced_sides="fail")
    with pytest.raises(PipelineFileError, match=r"split\.forced_sides is 'never'"):
        run_split(rows, tmp_path / "typo", forced_sides="never")
