"""Exact arithmetic for the gate: a score on its threshold passes, whatever its binary form.

0.815 - 0.810 is 0.00499... in binary floats. Every number is therefore taken as the shortest decimal that reads back as
the same float, and subtracted without rounding.
"""

import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ftpipeline.errors import InputError

ROLES = ("task", "regression", "safety")
"""What a candidate is scored on: its task, what it could do before, and what it must not answer."""

_GATE_KEYS = {"task": "task_min_gain_vs_prod", "regression": "regression_max_drop", "safety": "safety_max_drop"}

# Two float64 in [0, 1] span at most 342 decimal places; more than the context holds raises instead of being rounded.
_EXACT = decimal.Context(prec=400, traps=[decimal.Inexact, decimal.InvalidOperation])


@dataclass(frozen=True)
class Thresholds:
    """The three limits of a gate, as fractions in [0, 1], all inclusive.

    Attributes:
        task: least gain over production on the task set.
        regression: largest drop under production on the regression set.
        safety: largest drop under production on the safety set.
    """

    task: Decimal
    regression: Decimal
    safety: Decimal


def thresholds(gates: Mapping[str, Any]) -> Thresholds:
    """Read the gates of a manifest.

    Args:
        gates: `task_min_gain_vs_prod`, `regression_max_drop` and `safety_max_drop`; numbers, or numbers as text.

    Raises:
        InputError: a key is missing or unknown, or a threshold is not a number in [0, 1].
    """
    declared, known = set(gates), set(_GATE_KEYS.values())
    if declared != known:
        missing, unknown = sorted(known - declared), sorted(declared - known)
        raise InputError(f"gates: missing {missing}, unknown {unknown}; declare exactly {', '.join(sorted(known))}")
    return Thresholds(**{role: _fraction(f"gates.{key}", gates[key]) for role, key in _GATE_KEYS.items()})


def seed_band(scores: Sequence[float]) -> Decimal:
    """Return the spread, max - min, of the task scores of one manifest under several seeds; 0 when there are none.

    Raises:
        InputError: a score is not a number in [0, 1].
    """
    if not scores:
        return Decimal(0)
    fractions = [_fraction("seed_scores", score) for score in scores]
    return _EXACT.subtract(max(fractions), min(fractions))


def _fraction(where: str, value: object) -> Decimal:
    try:
        number = Decimal(value) if isinstance(value, str) else exact(value)
    except (decimal.InvalidOperation, TypeError):
        raise InputError(f"{where}: {value!r} is not a number; write a fraction such as 0.005") from None
    if not number.is_finite() or not 0 <= number <= 1:
        raise InputError(f"{where}: {value!r} is not in [0, 1]; write fractions, 0.01 is one point")
    return number


def exact(value: object) -> Decimal:
    """Return an int or float as the decimal that people read.

    Raises:
        TypeError: `value` is something else; a bool and a number as text are.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return Decimal(repr(value))


def difference(minuend: object, subtrahend: object) -> Decimal:
    """Return `minuend - subtrahend` of two ints or floats without rounding."""
    return _EXACT.subtract(exact(minuend), exact(subtrahend))


def plain(number: Decimal) -> str:
    """Return a decimal as text, without an exponent or trailing zeros."""
    return format(_EXACT.normalize(number), "f")
