"""The half-open window of a snapshot, and how event times of any notation become UTC."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ftpipeline.errors import PipelineFileError, SourceError

if TYPE_CHECKING:
    import pyarrow

_ISO_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
TOLERANCE = timedelta(days=1)
"""How far a source's clock may be ahead before a time counts as one from the future."""

_EPOCH = datetime(1970, 1, 1)  # naive: the value is read as an instant or as a local time by the caller


@dataclass(frozen=True)
class Window:
    """Rows of [start, end) that were ingested before the end, which is the cut.

    Attributes:
        start: UTC.
        end: UTC.
        zone: zone of times that carry none; None refuses such times.
        latest: no row can be of this time or later, whatever week it belongs to.
    """

    start: datetime
    end: datetime
    zone: ZoneInfo | None
    latest: datetime

    @classmethod
    def of(cls, params: Mapping[str, Any], now: datetime) -> "Window":
        """Return the window that a snapshot's parameters declare.

        Args:
            params: `window_start`, `window_end` and `timezone`.
            now: the time of reading; it decides which rows outside the window are rejected, never which are inside.

        Raises:
            PipelineFileError: a bound is no time with an offset, the bounds are not in order, or there is no such zone.
        """
        start, end = (_bound(name, params[name]) for name in ("window_start", "window_end"))
        if start >= end:
            raise PipelineFileError(f"window_start {start.isoformat()} is not before window_end {end.isoformat()}")
        return cls(start, end, _zone(params["timezone"]), max(end, now) + TOLERANCE)

    @classmethod
    def up_to(cls, now: datetime, timezone: str | None) -> "Window":
        """Return the window of everything that can have happened by now.

        Raises:
            PipelineFileError: there is no such zone.
        """
        latest = now + TOLERANCE
        return cls(datetime.min.replace(tzinfo=UTC), latest, _zone(timezone), latest)

    def holds(self, event: datetime, ingested: datetime) -> bool:
        """Say whether a row belongs to the window."""
        return self.start <= event < self.end and ingested < self.end

    def is_overtaken(self, event: datetime, ingested: datetime) -> bool:
        """Say whether a row is from the future: of a time to come, or known before the cut and dated well after it."""
        known_early = ingested < self.end and event >= self.end + TOLERANCE
        return known_early or max(event, ingested) >= self.latest

    def __str__(self) -> str:
        return f"[{self.start.isoformat()}, {self.end.isoformat()})"


def utc_times(name: str, column: "pyarrow.ChunkedArray", zone: ZoneInfo | None) -> list[datetime | None]:
    """Return a column's times in UTC; None for a value that is missing or cannot be read without guessing.

    A local time that a clock change skips cannot be read; one that it repeats is the earlier of the two.

    Fractions of a microsecond are cut off.

    Args:
        name: the column, for the message.
        column: timestamps with or without zone, or ISO 8601 text with or without offset.
        zone: zone of the times that carry none; None refuses them.

    Raises:
        SourceError: the column holds neither timestamps nor text.
    """
    import pyarrow as pa

    read = _reader(name, column.type, zone)
    if pa.types.is_timestamp(column.type):  # as counts: to Python's own types there are values out of range
        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64())
    return [None if value is None else read(value) for value in column.to_pylist()]


def _reader(name: str, kind: "pyarrow.DataType", zone: ZoneInfo | None) -> Callable[[Any], datetime | None]:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return _instant if kind.tz is not None else partial(_local_count, zone=zone)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return partial(read_iso, zone=zone)
    raise SourceError(f"source column {name!r} is {kind}; a time is a TIMESTAMP, a TIMESTAMPTZ or ISO 8601 text")


def read_iso(text: str, zone: ZoneInfo | None) -> datetime | None:
    """Return an ISO 8601 date and time in UTC, or None for any other notation."""
    if not _ISO_TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return _local(moment, zone) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # a day or an offset that does not exist
        return None


def _moment(microseconds: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:  # infinity, or a year that datetime does not know
        return None


def _instant(microseconds: int) -> datetime | None:
    moment = _moment(microseconds)
    return None if moment is None else moment.replace(tzinfo=UTC)


def _local_count(microseconds: int, zone: ZoneInfo | None) -> datetime | None:
    moment = _moment(microseconds)
    return None if moment is None else _local(moment, zone)


def _local(moment: datetime, zone: ZoneInfo | None) -> datetime | None:
    if zone is None:
        return None
    try:
        instant = moment.replace(tzinfo=zone).astimezone(UTC)
        exists = instant.astimezone(zone).replace(tzinfo=None) == moment
    except OverflowError:  # the first or last day that datetime knows
        return None
    return instant if exists else None


def _bound(name: str, text: str) -> datetime:
    moment = read_iso(text, None)
    if moment is None:
        raise PipelineFileError(f"{name} {text!r} is no time with an offset; write it like 2026-11-09T00:00:00Z")
    return moment


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise PipelineFileError(f"no time zone {name!r}; give an IANA name such as Europe/Berlin or UTC") from error
