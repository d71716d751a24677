"""Step keys (contract C4): two calls share a key only if nothing that could change the result differs.

Parameters are written in a *typed* form before they are hashed, because plain JSON writes 0, 0.0 and -0.0, a tuple and
a list, and the keys 1 and "1" the same way. Law: `typed(a) == typed(b)` exactly when a and b are equal, of equal types.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.errors import CanonicalFormError

_FORMAT = "ftpipeline/step-key/v1"


def step_key(
    name: str, code: Digest, inputs: Mapping[str, Digest], params: Mapping[str, Any], environment: Digest
) -> Digest:
    """Return the key of one call of a step.

    Args:
        name: the step's name.
        code: fingerprint of the step's code and of every port bound to it.
        inputs: input name to digest.
        params: the declared parameters.
        environment: fingerprint of the distributions and settings that can change the result.

    Raises:
        CanonicalFormError: a parameter has no typed form.
    """
    return digest.of_json([_FORMAT, name, code, dict(inputs), typed(params), environment])


def typed(value: object, where: str = "params") -> list[Any]:
    """Return `value` as JSON in which every value carries its type.

    Raises:
        CanonicalFormError: a NaN or infinity, or a type without a typed form.
    """
    if value is None:
        return ["none"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", _float(value, where)]
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, [typed(item, f"{where}[{index}]") for index, item in enumerate(value)]]
    if isinstance(value, Mapping):
        pairs = [[typed(key, where), typed(item, f"{where}.{key}")] for key, item in value.items()]
        return ["map", sorted(pairs, key=lambda pair: json.dumps(pair[0]))]
    raise CanonicalFormError(f"{where}: a {type(value).__name__} cannot be a step parameter; pass JSON values")


def untyped(value: object) -> Any:
    """Return the value whose typed form is `value`. Law: `untyped(typed(v)) == v`, with equal types.

    Raises:
        ValueError, TypeError: `value` is no typed form.
    """
    match value:
        case ["none"]:
            return None
        case ["bool", bool(flag)]:
            return flag
        case ["str", str(text)]:
            return text
        case ["int", str(text)]:
            return int(text)
        case ["float", str(text)]:
            return float.fromhex(text)
        case ["list", list(items)]:
            return [untyped(item) for item in items]
        case ["tuple", list(items)]:
            return tuple(untyped(item) for item in items)
        case ["map", list(pairs)]:
            return {untyped(key): untyped(item) for key, item in pairs}
    raise ValueError(f"{value!r} is no typed form")


def _float(value: float, where: str) -> str:
    if not math.isfinite(value):
        raise CanonicalFormError(f"{where}: {value} cannot be a step parameter; parameters are finite")
    return value.hex()
