"""Rows come back as they were written, and equal rows are equal bytes."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.rows import CuratedRow, Leak, SnapshotRow
from ftpipeline.steps.tables import read_record, read_rows, write_record, write_rows

moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
keys = st.lists(texts, max_size=3).map(tuple)
rows = st.builds(SnapshotRow, texts, texts, texts, st.none() | texts, moments, keys)
curated = st.builds(CuratedRow, texts, texts, texts, moments, keys, keys)
leaks = st.builds(Leak, texts, texts, texts, texts, st.floats(0, 1), texts, keys)


@given(st.one_of(st.lists(rows), st.lists(curated), st.lists(leaks)))
def test_rows_come_back_as_they_were_written(tmp_path_factory: Any, written: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("rows", numbered=True)
    kind = type(written[0]) if written else SnapshotRow
    for name in ("a", "b"):
        write_rows(folder / name, written, kind)
    assert read_rows(folder / "a", kind) == written
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


def test_a_record_does_not_depend_on_the_order_of_its_keys(tmp_path: Path) -> None:
    write_record(tmp_path / "a", {"x": 1, "y": [True, None, 0.5]})
    write_record(tmp_path / "b", {"y": [True, None, 0.5], "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert read_record(tmp_path / "a") == {"x": 1, "y": [True, None, 0.5]}
