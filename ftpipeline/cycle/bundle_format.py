"""The container of a bundle: a POSIX ustar archive of which every byte is determined by its members.

Members stand sorted by name, as regular files with fixed mode, owner and time; two zero blocks end the file. Any tar
program lists and unpacks it. Law: `decode(encode(members)) == members`, and no other bytes decode.
"""

import re
import struct
from collections.abc import Mapping

from ftpipeline.digest import Digest, hex_of
from ftpipeline.receipts import VerificationError

CONTAINER = "the container"
"""What the bytes of a bundle that belong to no member are called in errors."""

LINEAGE = "lineage.json"
"""Member with the puts that the artifact descends from."""

STATEMENT = "statement.dsse.json"
"""Member with the signed digests of all other members and of the artifact."""

MEMBER_LIMIT = 16 << 20
"""Bytes that a member holds at most."""

BUNDLE_LIMIT = 64 << 20
"""Bytes that a bundle holds at most."""

JOBS_MANIFEST = "concurrent_jobs_manifest.json"
"""Member of a ledger's bundle with the jobs at its cut."""

CONSUMPTION_LEDGER = "checkpoint_consumption_ledger.json"
"""Member of a ledger's bundle with what the jobs consumed."""

_NAME = re.compile(
    r"lineage\.json|statement\.dsse\.json|blobs/sha256/[0-9a-f]{64}"
    r"|concurrent_jobs_manifest\.json|checkpoint_consumption_ledger\.json"
    r"|(events|heads)/[A-Za-z0-9][A-Za-z0-9._-]{0,79}\.jsonl"
)
_BLOCK = 512
_END = bytes(2 * _BLOCK)
_HEADER = struct.Struct("100s8s8s8s12s12s8s1s100s6s2s32s32s8s8s155s12x")
_CHECKSUM = 6  # index of the checksum among the fields of a header


def blob_name(digest: Digest) -> str:
    """Return the name of the member that holds the blob `digest`."""
    return f"blobs/sha256/{hex_of(digest)}"


def events_name(job_id: str) -> str:
    """Return the name of the member that holds the events of a job."""
    return f"events/{job_id}.jsonl"


def heads_name(job_id: str) -> str:
    """Return the name of the member that holds the signed heads of a job."""
    return f"heads/{job_id}.jsonl"


def encode(members: Mapping[str, bytes]) -> bytes:
    """Return the container of `members`, name to content.

    Raises:
        VerificationError: a name is not one that a bundle has, or a limit is passed.
    """
    parts = []
    for name in sorted(members):
        content = members[name]
        _check_member(name, len(content))
        parts += [_header(name, len(content)), content, bytes(-len(content) % _BLOCK)]
    data = b"".join([*parts, _END])
    _check_size(len(data))
    return data


def decode(data: bytes) -> dict[str, bytes]:
    """Return the members of a container, name to content.

    Raises:
        VerificationError: it is damaged, or not in its one form: links, folders, other names, names that stand twice,
            another order, other modes or times, and bytes after the end are all refused.
    """
    _check_size(len(data))
    members: dict[str, bytes] = {}
    offset = 0
    while data[offset : offset + _BLOCK] != _END[:_BLOCK]:
        name, size = _read_header(data[offset : offset + _BLOCK])
        if name in members:
            raise VerificationError(CONTAINER, f"holds {name!r} twice")
        offset += _BLOCK
        members[name] = data[offset : offset + size]
        offset += size + -size % _BLOCK
    if encode(members) != data:
        raise VerificationError(CONTAINER, "is damaged, or was not written by ftpipeline")
    return members


def _check_size(size: int) -> None:
    if size > BUNDLE_LIMIT:
        raise VerificationError(CONTAINER, f"is larger than {BUNDLE_LIMIT} bytes, the most that a bundle may hold")


def _check_member(name: str, size: int) -> None:
    if not _NAME.fullmatch(name):
        raise VerificationError(CONTAINER, f"names a member {name!r}, which no bundle has")
    if size > MEMBER_LIMIT:
        raise VerificationError(CONTAINER, f"names {size} bytes of {name}; a member holds at most {MEMBER_LIMIT}")


def _header(name: str, size: int) -> bytes:
    """Return the header block of a regular file, mode 0644, owner 0, time 0."""
    owner = b"%07o\0" % 0
    numbers = [b"%07o\0" % 0o644, owner, owner, b"%011o\0" % size, b"%011o\0" % 0]
    fields = [name.encode(), *numbers, b" " * 8, b"0", b"", b"ustar\0", b"00", b"", b"", b"", b"", b""]
    fields[_CHECKSUM] = b"%06o\0 " % sum(_HEADER.pack(*fields))
    return _HEADER.pack(*fields)


def _read_header(block: bytes) -> tuple[str, int]:
    """Return name and size; whether the block is the header of just these, re-encoding tells."""
    try:
        fields = _HEADER.unpack(block)
        name, size = fields[0].rstrip(b"\0").decode("ascii"), int(fields[4].rstrip(b"\0"), 8)
    except (struct.error, ValueError) as error:
        raise VerificationError(CONTAINER, "is damaged or cut short, or is no bundle") from error
    _check_member(name, size)
    return name, size
