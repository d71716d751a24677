"""Laws of weeks: half-open, in their zone, named by ISO week and back."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import PipelineFileError, UnknownNameError
from ftpipeline.weeks import DAYS, Calendar, iso_name

_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
_calendars = st.builds(Calendar, st.sampled_from(_ZONES), st.sampled_from(DAYS))
_moments = st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))


@given(_calendars, _moments)
def test_every_moment_lies_in_exactly_the_week_it_is_given(calendar: Calendar, moment: datetime) -> None:
    week = calendar.week_of(moment)
    start, end = calendar.bounds(week)
    assert start <= moment < end
    assert calendar.bounds(week + timedelta(days=7))[0] == end


@given(_calendars, _moments)
def test_iso_names_map_to_weeks_and_back_over_thirty_years(calendar: Calendar, moment: datetime) -> None:
    week = calendar.week_of(moment)
    assert calendar.parse(iso_name(week)) == week
    assert calendar.parse(week.isoformat()) == week


@given(_calendars, _moments)
def test_the_last_completed_week_has_ended_and_the_next_has_not(calendar: Calendar, moment: datetime) -> None:
    week = calendar.last_completed(moment)
    assert calendar.bounds(week)[1] <= moment < calendar.bounds(week + timedelta(days=7))[1]


def test_monday_weeks_are_iso_weeks() -> None:
    assert iso_name(date(2026, 11, 2)) == "2026-W45"
    assert iso_name(date(2020, 12, 28)) == "2020-W53"
    assert Calendar("UTC").parse("2020-W53") == date(2020, 12, 28)


@pytest.mark.parametrize(("first_day", "hours"), [(date(2026, 3, 23), 167), (date(2026, 10, 19), 169)])
def test_a_week_with_a_clock_change_lasts_an_hour_less_or_more(first_day: date, hours: int) -> None:
    start, end = Calendar("Europe/Berlin").bounds(first_day)
    assert (end - start) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["2026-W54", "2025-W53", "2026-W00", "W45", "2026-11-03", "yesterday", ""])
def test_what_is_no_week_is_refused(text: str) -> None:
    with pytest.raises(UnknownNameError):
        Calendar("UTC").parse(text)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(PipelineFileError, match="no time zone 'Europe/Atlantis'"):
        Calendar("Europe/Atlantis").zone()
