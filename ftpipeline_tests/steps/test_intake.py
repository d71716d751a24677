"""No row is lost on the way in, whatever it holds and in whatever order it comes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.intake import Columns, Intake, take_in
from ftpipeline.steps.windows import Window
from ftpipeline_tests.steps.data_steps import COLUMNS, READ, WEEK

WINDOW = Window.of({**WEEK, "timezone": None}, READ)
NAMES = ("ticket_id", "text", "queue", "created_at", "customer_id")
cells = st.sampled_from([None, "", "  ", "a", "b", "nul\0"])
times = st.sampled_from([None, "2026-10-05T00:00:00Z", "2026-10-12T00:00:00Z", "yesterday", "2026-10-06 10:00:00"])
tables = st.lists(st.tuples(cells, cells, cells, times, cells), max_size=12)
Row = tuple[str | None, ...]


def taken(rows: Sequence[Row], **columns: Any) -> Intake:
    values = list(zip(*rows, strict=True)) or [()] * len(NAMES)
    table = pa.table({name: pa.array(column, pa.string()) for name, column in zip(NAMES, values, strict=True)})
    return take_in(table, Columns(**{**COLUMNS, **columns}), WINDOW)


@given(tables)
def test_every_row_is_accepted_rejected_or_outside(rows: list[Row]) -> None:
    intake = taken(rows)
    assert len(intake.accepted) + len(intake.rejects) + intake.outside == len(rows)
    outside = [row for row in rows if row[3] == "2026-10-12T00:00:00Z"]
    assert intake.outside == len(outside)


@given(tables)
def test_what_is_accepted_is_usable_and_stands_once(rows: list[Row]) -> None:
    kept = taken(rows).accepted
    assert len(kept) == len({row.id for row in kept})
    for row in kept:
        values = (row.id, row.text, row.label, *row.groups)
        assert all(value.strip() and "\0" not in value for value in values)
        assert (row.id, row.text, row.label) in {source[:3] for source in rows}


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: list[Row], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    assert taken(shuffled) == taken(rows)


def test_equal_values_of_two_group_columns_are_two_keys() -> None:
    intake = taken([("T1", "text", "billing", "2026-10-05T00:00:00Z", "7")], groups=["customer_id", "ticket_id"])
    assert intake.accepted[0].groups == ("customer_id=7", "ticket_id=T1")


def test_a_blank_group_value_is_no_key() -> None:
    rows = [
        (f"T{n}", "text", "billing", "2026-10-05T00:00:00Z", value) for n, value in enumerate([None, "", "  ", "x"])
    ]
    assert [row.groups for row in taken(rows).accepted] == [(), (), (), ("customer_id=x",)]


def test_rows_outside_the_window_are_not_judged() -> None:
    rows = [(None, None, None, "2026-10-12T00:00:00Z", None), ("T1", "text", "", "2026-10-05T00:00:00Z", None)]
    intake = taken(rows)
    assert Counter(reject.reason for reject in intake.rejects) == {"missing_label": 1}
    assert intake.outside == 1
