"""Cron schedules of five fields, as Dagster takes them."""

from collections.abc import Sequence

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIELDS: Sequence[tuple[range, Sequence[str]]] = (
    (range(60), ()),
    (range(24), ()),
    (range(1, 32), ()),
    (range(1, 13), _MONTHS),
    (range(7), ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
"""Values and names of minutes, hours, days of the month, months and days of the week, in the order of cron's fields."""


def is_cron(text: str) -> bool:
    """Tell whether a text is a schedule: minute, hour, day of the month, month and day of the week."""
    fields = text.split()
    return len(fields) == len(_FIELDS) and all(map(_is_field, fields, _FIELDS))


def _is_field(field: str, kind: tuple[range, Sequence[str]]) -> bool:
    """Tell whether a field is a list of `*`, values and ranges, each with or without a step."""
    return all(_is_item(item, *kind) for item in field.lower().split(","))


def _is_item(item: str, values: range, names: Sequence[str]) -> bool:
    span, slash, step = item.partition("/")
    if slash and not (step.isdecimal() and int(step) in range(1, values.stop)):
        return False
    if span == "*":
        return True
    ends = [values[names.index(end)] if end in names else _whole(end) for end in span.split("-")]
    return len(ends) <= 2 and all(end in values for end in ends) and ends == sorted(ends)


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() else -1
