"""Weeks: half-open, in a declared zone, named by their first day; ISO week names map to them and back.

A partition key is the date of the week's first day, `2026-11-02`. Its window is [first day 00:00, seven days later
00:00) in the declared zone, so a week with a clock change lasts 167 or 169 hours. A week is called by the ISO week that
most of its days lie in (the one of its fourth day), whatever day it starts on.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ftpipeline.errors import PipelineFileError, UnknownNameError

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ISO = re.compile(r"(\d{4})-?W(\d{2})")


@dataclass(frozen=True)
class Calendar:
    """Which day a week starts on, and where.

    Attributes:
        timezone: IANA zone name.
        starts: lower-case English name of a day.
    """

    timezone: str
    starts: str = "monday"

    def zone(self) -> ZoneInfo:
        """Return the zone.

        Raises:
            PipelineFileError: there is no such zone.
        """
        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise PipelineFileError(
                f"week.timezone: no time zone {self.timezone!r}; give an IANA name such as Europe/Berlin or UTC"
            ) from error

    def bounds(self, first_day: date) -> tuple[datetime, datetime]:
        """Return the week's start and end in UTC, end exclusive."""
        return self.instant(first_day), self.instant(first_day + timedelta(days=7))

    def instant(self, day: date) -> datetime:
        """Return the start of a local day in UTC."""
        return datetime.combine(day, time(), self.zone()).astimezone(UTC)

    def week_of(self, moment: datetime) -> date:
        """Return the first day of the week that an aware moment lies in."""
        local = moment.astimezone(self.zone()).date()
        return local - timedelta(days=(local.weekday() - DAYS.index(self.starts)) % 7)

    def last_completed(self, now: datetime) -> date:
        """Return the first day of the last week that has ended by the aware moment `now`."""
        return self.week_of(now) - timedelta(days=7)

    def parse(self, text: str) -> date:
        """Return the first day of a week given as `2026-W45` or as the date of its first day.

        Raises:
            UnknownNameError: the text is neither, or the date is not a first day.
        """
        if match := _ISO.fullmatch(text):
            try:
                fourth_day = date.fromisocalendar(int(match[1]), int(match[2]), 4)
            except ValueError as error:
                raise UnknownNameError(f"there is no ISO week {text!r}; weeks run from W01 to W52 or W53") from error
            # The week called W is the one whose fourth day is nearest to the Thursday of ISO week W.
            start = fourth_day - timedelta(days=3)
            return start + timedelta(days=(DAYS.index(self.starts) + 3) % 7 - 3)
        try:
            day = date.fromisoformat(text)
        except ValueError as error:
            raise UnknownNameError(f"{text!r} is no week; write 2026-W45 or the date of its first day") from error
        if day.weekday() != DAYS.index(self.starts):
            raise UnknownNameError(f"{text} is no {self.starts}; this pipeline's weeks start on {self.starts}")
        return day


def iso_name(first_day: date) -> str:
    """Return the ISO week name of the week that starts on `first_day`, as `2026-W45`."""
    year, week, _ = (first_day + timedelta(days=3)).isocalendar()
    return f"{year}-W{week:02d}"
