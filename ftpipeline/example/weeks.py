"""The example's fixed calendar: weeks that start on Monday, UTC, and end with the week of 2026-11-09."""

from datetime import UTC, datetime, timedelta
from random import Random

END = datetime(2026, 11, 16, tzinfo=UTC)
"""First moment after the history."""

LATE_START = END - timedelta(weeks=6)
"""When the late queue opens."""

_WEEKDAY_WEIGHTS = (22, 19, 18, 17, 14, 6, 4)
_HOUR_WEIGHTS = (1, 1, 1, 1, 1, 2, 4, 7, 11, 13, 13, 11, 8, 10, 11, 10, 8, 6, 4, 4, 3, 3, 2, 1)


def moments(rng: Random, *, per_week: int, weeks: int) -> list[datetime]:
    """Return when the tickets are written, in order: `per_week` moments in each of the `weeks` weeks before `END`."""
    start = END - timedelta(weeks=weeks)
    return sorted(start + timedelta(weeks=week) + _into_week(rng) for week in range(weeks) for _ in range(per_week))


def any_moment(rng: Random) -> datetime:
    """Return a moment of the half-year before `END`."""
    return END - timedelta(weeks=rng.randint(1, 26)) + _into_week(rng)


def _into_week(rng: Random) -> timedelta:
    day = rng.choices(range(7), _WEEKDAY_WEIGHTS)[0]
    hour = rng.choices(range(24), _HOUR_WEIGHTS)[0]
    return timedelta(days=day, hours=hour, seconds=rng.randrange(3600))
