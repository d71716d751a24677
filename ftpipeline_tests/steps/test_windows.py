"""Times become UTC without guessing, and the window is half-open."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import PipelineFileError, SourceError
from ftpipeline.steps.windows import Window, read_iso, utc_times
from ftpipeline_tests.steps.data_steps import READ, WEEK

BERLIN = ZoneInfo("Europe/Berlin")
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1))
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(moments, offsets)
def test_every_time_with_an_offset_is_read_exactly(moment: datetime, offset: timezone) -> None:
    aware = moment.replace(tzinfo=offset)
    assert read_iso(aware.isoformat(), None) == aware
    assert read_iso(aware.isoformat(" "), BERLIN) == aware


@given(moments)
def test_text_and_timestamp_columns_are_read_alike(moment: datetime) -> None:
    text = utc_times("t", pa.chunked_array([[moment.isoformat()]]), BERLIN)
    naive = utc_times("t", pa.chunked_array([pa.array([moment], pa.timestamp("us"))]), BERLIN)
    aware = utc_times(
        "t", pa.chunked_array([pa.array([moment.replace(tzinfo=UTC)], pa.timestamp("us", tz="UTC"))]), None
    )
    assert text == naive
    assert aware == [moment.replace(tzinfo=UTC)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1791160200",
        "05/10/2026 00:30",
        "2026-10-05",
        "2026-10-04T24:00:00Z",
        "2026-10-04T23:59:60Z",
        "2026-W41-1T00:00",
        "2026-02-30T00:00:00Z",
        "20261005T003000Z",
        "2026-10-05T00:30:00Z ",
        "2026-10-05T00:30:00+99:00",
        "\u0662\u0660\u0662\u0666-10-05T00:30Z",
    ],
)
def test_another_notation_is_never_guessed(text: str) -> None:
    assert read_iso(text, BERLIN) is None


def test_a_time_without_zone_needs_a_declared_one() -> None:
    assert read_iso("2026-10-05 00:30:00", None) is None
    assert read_iso("2026-10-05 00:30:00", BERLIN) == datetime(2026, 10, 4, 22, 30, tzinfo=UTC)


def test_a_local_time_that_a_clock_change_skips_is_refused_and_one_it_repeats_is_the_earlier() -> None:
    assert read_iso("2026-03-29T02:30:00", BERLIN) is None
    assert read_iso("2026-10-25T02:30:00", BERLIN) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize("count", [2**63 - 1, -(2**63) + 1])
def test_infinite_timestamps_are_no_times(count: int) -> None:
    for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
        assert utc_times("t", pa.chunked_array([pa.array([count, None], pa.int64()).cast(kind)]), BERLIN) == [
            None,
            None,
        ]


def test_a_column_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(SourceError, match="'created_at' is int64"):
        utc_times("created_at", pa.chunked_array([[1791160200]]), BERLIN)


def test_the_window_is_half_open_and_the_cut_is_its_end() -> None:
    window = Window.of({**WEEK, "timezone": None}, READ)
    tick = timedelta(microseconds=1)
    held = [window.holds(event, event) for event in (window.start - tick, window.start, window.end - tick, window.end)]
    assert held == [False, True, True, False]
    assert not window.holds(window.start, window.end)
    assert window.holds(window.start, window.end - tick)


@pytest.mark.parametrize(
    "changes",
    [
        {"window_start": "2026-10-12T00:00:00Z"},
        {"window_start": "2026-10-05T00:00:00"},
        {"window_end": "next week"},
        {"timezone": "Europe/Atlantis"},
    ],
)
def test_a_window_that_is_none_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PipelineFileError):
        Window.of({**WEEK, "timezone": None, **changes}, READ)
