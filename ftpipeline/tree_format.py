"""The bytes of a tree (contract C2).

A tree is the blob of the canonical JSON (RFC 8785)

    {"entries": [["config.json", 123, "sha256:<64 hex>"], ...], "type": "ftpipeline.tree", "version": 1}

with one `[posix path, size in bytes, sha256]` a file, sorted by path in code point order. Empty folders, modes and
times are not part of it. Law: a tree has exactly one encoding: `decode(d, encode(e)) == e`, and no other bytes decode.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ftpipeline.digest import Digest, canonical_json, parse
from ftpipeline.errors import CanonicalFormError, DigestError, TreeError
from ftpipeline.tree_names import check_names

_HEADER = {"type": "ftpipeline.tree", "version": 1}


@dataclass(frozen=True)
class TreeEntry:
    """One file of a tree.

    Attributes:
        path: posix path relative to the tree.
        size: in bytes.
        sha256: digest of the file's bytes.
    """

    path: str
    size: int
    sha256: Digest


def encode(entries: Sequence[TreeEntry]) -> bytes:
    """Return the tree of `entries`, which are sorted by path."""
    return canonical_json({**_HEADER, "entries": [[entry.path, entry.size, entry.sha256] for entry in entries]})


def decode(digest: Digest, data: bytes) -> tuple[TreeEntry, ...]:
    """Return the entries of the tree `data`, whose digest is `digest`.

    Raises:
        TreeError: it is not a tree, not in canonical form, or lists a name that a tree may not hold.
    """
    try:
        entries = tuple(_entry(row) for row in _rows(data))
        is_canonical = encode(entries) == data
    except (ValueError, TypeError, RecursionError, DigestError, CanonicalFormError) as error:
        raise TreeError(f"{digest} is not a tree of version 1; give the digest of a stored folder") from error
    paths = [entry.path for entry in entries]
    if not is_canonical or paths != sorted(set(paths)):
        raise TreeError(f"{digest} is a tree in other than its one canonical form; store the folder again")
    check_names(paths)
    return entries


def _rows(data: bytes) -> list[list[object]]:
    document = json.loads(data)
    if not isinstance(document, dict) or {key: document.get(key) for key in _HEADER} != _HEADER:
        raise ValueError("no tree header")
    rows = document.get("entries")
    if not isinstance(rows, list):
        raise ValueError("no entries")
    return rows


def _entry(row: list[object]) -> TreeEntry:
    path, size, sha256 = row
    if not isinstance(path, str) or type(size) is not int or size < 0:
        raise ValueError(f"no entry: {row}")
    return TreeEntry(path, size, parse(sha256))
