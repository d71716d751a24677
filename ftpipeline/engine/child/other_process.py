"""Reading what another process of this user is at; FileNotFoundError or ProcessLookupError if it has ended."""

import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LONGEST_PATH = 4096


def process_of(thread: int) -> int:
    """Return the id of the process that a thread belongs to."""
    lines = Path(f"/proc/{thread}/status").read_text(errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith("Tgid:")).split()[1])


def name_of(thread: int) -> str:
    """Return the name of the program that a thread runs."""
    return Path(f"/proc/{thread}/comm").read_text(errors="replace").strip()


def read_text(thread: int, address: int) -> str:
    """Return the path at an address, empty if there is none.

    It may cross a page's border, and the page after its end may be missing.
    """
    data = b""
    while address and b"\0" not in data and len(data) < _LONGEST_PATH:
        chunk = read_memory(thread, address + len(data), _PAGE - (address + len(data)) % _PAGE)
        if not chunk:
            return ""
        data += chunk
    return os.fsdecode(data.partition(b"\0")[0])


def read_memory(thread: int, address: int, size: int) -> bytes:
    """Return up to `size` bytes at an address, fewer where the memory ends."""
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY)
    try:
        return os.pread(memory, size, address)
    except OSError:
        return b""  # not an address of that process: the call itself will fail
    finally:
        os.close(memory)
