"""Text from templates: `[a|b]` is one of the alternatives, `{slot}` is replaced by a value.

Alternatives may hold slots and do not nest. The same generator state always gives the same text.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from random import Random
from typing import Any

from ftpipeline.errors import UnknownNameError

_ALTERNATIVES = re.compile(r"\[([^\]]*)\]")
_SLOT = re.compile(r"\{(\w+?)2?\}")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def read_data(name: str) -> dict[str, Any]:
    """Return the content of a TOML file that lies beside this module."""
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Grammar:
    """Expands templates.

    Attributes:
        rng: where every choice comes from.
        slots: the values of each listed slot; `{name2}` draws from the list of `name` too. Dates, amounts, order and
            telephone numbers are computed.
    """

    rng: Random
    slots: Mapping[str, Sequence[str]]

    def expand(self, templates: Sequence[str], when: datetime, **given: str) -> str:
        """Return one of `templates` with its alternatives chosen and its slots filled.

        Args:
            templates: one is drawn, each with the same chance.
            when: when the text is written; the dates in it lie before.
            given: values of slots that only the caller knows.

        Raises:
            UnknownNameError: a template names a slot that nobody fills.
        """
        chosen = _ALTERNATIVES.sub(lambda found: self.rng.choice(found[1].split("|")), self.rng.choice(templates))
        used: set[str] = set()

        def fill(found: re.Match[str]) -> str:
            value = given[found[1]] if found[1] in given else self._value(found[1], when, used)
            used.add(value)
            return value

        return _SLOT.sub(fill, chosen)

    def _value(self, name: str, when: datetime, used: set[str]) -> str:
        if name in self.slots:
            return self.rng.choice([value for value in self.slots[name] if value not in used])
        if name == "date":
            return self._date(when - timedelta(days=self.rng.randint(1, 24)))
        if name == "amount":
            return self._amount()
        if name == "order":
            return f"{self.rng.choice(['WS-', 'WS', '#'])}{self.rng.randint(100_000, 999_999)}"
        if name == "phone":
            return f"+1 202 555 01{self.rng.randint(0, 99):02d}"
        if name in ("days", "code"):
            return str(self.rng.randint(2, 30))
        raise UnknownNameError(f"template slot {{{name}}} has no values; add a list of that name to the slots")

    def _date(self, day: datetime) -> str:
        month = _MONTHS[day.month - 1]
        forms = (f"{day.day} {month}", f"{month} {day.day}", f"{day:%Y-%m-%d}", _WEEKDAYS[day.weekday()])
        return self.rng.choice(forms)

    def _amount(self) -> str:
        number = f"{self.rng.randint(4, 480)}.{self.rng.choice(['00', '50', '90', '95', '99'])}"
        return self.rng.choice((f"{number} euros", f"EUR {number}", f"${number}", number))
