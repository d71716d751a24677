"""Exact arithmetic for the gate: a score on its threshold passes, whatever its binary form.

0.815 - 0.810 is 0.00499... in binary floats. Every number is therefore taken as the shortest decimal that reads back as
the same float, and subtracted without rounding.
"""

import decimal
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ftpipeline.errors import InputError

ROLES = ("task", "regression", "safety")
"""What a candidate is scored on: its task, what it could do before, and what it must not answer."""

_GATE_KEYS = {"task": "task_min_gain_vs_prod", "regression": "regression_max_drop", "safety": "safety_max_drop"}

_STUDENT_T_95 = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)
"""95 % quantile of Student's t for 1, 2, ... degrees of freedom; the last one stands, a little high, for all beyond."""

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

    def by_role(self) -> Mapping[str, Decimal]:
        """Return the limits by role."""
        return dict(zip(ROLES, (self.task, self.regression, self.safety), strict=True))


def thresholds(gates: Mapping[str, Any]) -> Thresholds:
    """Read the gates of a manifest.

    Args:
        gates: `task_min_gain_vs_prod`, `regression_max_drop` and `safety_max_drop`; numbers, or numbers as text.

    Raises:
        InputError: a key is missing or unknown, or a threshold is not a number in [0, 1].
    """
    declared, known = set(gates), set(_GATE_KEYS.values())
    if declared != known:
        missing, unknown = sorted(known - declared), sorted(map(str, declared - known))
        raise InputError(f"gates: missing {missing}, unknown {unknown}; declare exactly {', '.join(sorted(known))}")
    return Thresholds(**{role: _fraction(f"gates.{key}", gates[key]) for role, key in _GATE_KEYS.items()})


@dataclass(frozen=True)
class Band:
    """How far the scores of one manifest move with the seed alone.

    Attributes:
        spread: highest minus lowest score.
        width: what the difference between two further trainings exceeds, upwards, in 5 % of the cases.
    """

    spread: Decimal
    width: Decimal


def noise_band(scores: Sequence[float]) -> Band:
    """Return the band of the scores of one manifest under several seeds.

    The spread of three seeds says little: two further trainings differ by more than it in one case of seven. The width
    is the bound of a difference between two normal draws whose deviation is estimated from these scores: Student's t
    at 95 %, one-sided, times the deviation of a difference, rounded up to a millionth.

    Raises:
        InputError: a score is not a number in [0, 1], or there are fewer than two.
    """
    if len(scores) < 2:
        raise InputError(f"seed_scores: {len(scores)} scores show no spread; train under at least two seeds")
    fractions = [_fraction("seed_scores", score) for score in scores]
    freedom = min(len(scores) - 1, len(_STUDENT_T_95))
    width = _STUDENT_T_95[freedom - 1] * math.sqrt(2) * statistics.stdev(map(float, fractions))
    return Band(_EXACT.subtract(max(fractions), min(fractions)), Decimal(math.ceil(width * 10**6)).scaleb(-6))


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


def one_of(rows: int) -> str:
    """Return the weight of one of `rows` examples as text, to four digits."""
    return format(decimal.Context(prec=4).divide(Decimal(1), Decimal(rows)), "f")
