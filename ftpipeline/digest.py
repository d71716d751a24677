"""Content digests and the canonical JSON that signed and hashed records are written in (contract C1).

Law: `parse(str(d)) == d`, and equal values have equal canonical bytes whatever the order of their keys.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NewType

import rfc8785

from ftpipeline.errors import CanonicalFormError, DigestError

Digest = NewType("Digest", str)
"""`sha256:` and 64 lower-case hexadecimal digits."""

_FORM = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_INT = 2**53 - 1  # beyond it, a reader that knows only doubles changes the number
_CHUNK = 1 << 20


def parse(text: object) -> Digest:
    """Return `text` as a digest.

    Raises:
        DigestError: it is not `sha256:<64 hex>`.
    """
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        raise DigestError(f"{text!r} is not a digest; a digest is 'sha256:' and 64 lower-case hexadecimal digits")
    return Digest(text)


def hex_of(digest: Digest) -> str:
    """Return the 64 hexadecimal digits of `digest`."""
    return digest.partition(":")[2]


def of_bytes(data: bytes) -> Digest:
    """Return the digest of `data`."""
    return Digest(f"sha256:{hashlib.sha256(data).hexdigest()}")


def of_file(path: Path) -> Digest:
    """Return the digest of the file's bytes, read in chunks of 1 MiB."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
    return Digest(f"sha256:{hasher.hexdigest()}")


def of_json(value: object) -> Digest:
    """Return the digest of `canonical_json(value)`."""
    return of_bytes(canonical_json(value))


def canonical_json(value: object) -> bytes:
    """Return `value` as RFC 8785 JSON.

    Raises:
        CanonicalFormError: a non-finite float, an int beyond 2^53, a key that is not text, or a type JSON lacks.
    """
    _check(value, "$")
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # _check has just narrowed it
    except rfc8785.CanonicalizationError as error:
        raise CanonicalFormError(f"{error}; write it as text that UTF-8 can carry") from error


def _check(value: object, where: str) -> None:
    if value is None or isinstance(value, str | bool):
        return
    if isinstance(value, int):
        if abs(value) > _MAX_INT:
            raise CanonicalFormError(f"{where}: {value} is beyond 2^53; write it as text")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise CanonicalFormError(f"{where}: {value} is not finite; a record holds finite numbers only")
        if value.is_integer() and abs(value) > _MAX_INT:
            raise CanonicalFormError(f"{where}: {value} is beyond 2^53; write it as text")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, f"{where}[{index}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise CanonicalFormError(f"{where}: key {key!r} is not text; use text keys")
            _check(item, f"{where}.{key}")
    else:
        raise CanonicalFormError(f"{where}: a {type(value).__name__} has no JSON form")


def parse_json(data: bytes) -> Any:
    """Return strict JSON as values.

    Raises:
        CanonicalFormError: not UTF-8, not JSON, a bare NaN or infinity, or a key that stands twice.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError("a key stands twice")
        return dict(pairs)

    try:
        return json.loads(data.decode("utf-8"), parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise CanonicalFormError(f"not strict JSON: {error}; write it again with a strict writer") from error
