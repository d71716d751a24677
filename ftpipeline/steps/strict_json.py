"""JSON as the standard has it: no key twice, no NaN, and no depth that a parser breaks at."""

import json
from typing import Any, NoReturn


def parse(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not strict JSON; the message says what is wrong and holds none of the text.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except json.JSONDecodeError as error:
        raise ValueError("malformed_json") from error
    except RecursionError as error:
        raise ValueError("malformed_json") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("duplicate_key")
    return values


def _refused(constant: str) -> NoReturn:
    raise ValueError("non_finite_number")
