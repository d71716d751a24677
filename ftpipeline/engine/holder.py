"""Who works: a process as text that no other process ever has, and whether it is known to have ended.

The text is `host:pid:machine:start:random`. A pid means something only on its own running machine and in its own pid
namespace, and is given out again; so both, and the start of the process, are in the text. Where the platform does not
tell them, nothing is known of any process.
"""

import os
import socket
import uuid
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_STATE, _START = 0, 19  # fields of /proc/PID/stat after the command's name, which may hold anything
_ENDED = frozenset("ZX")
_UNKNOWN = "unknown"


def this_process() -> str:
    """Return the text of this process; each call gives another."""
    fields = _stat(os.getpid())
    start = fields[_START] if fields is not None else _UNKNOWN
    return f"{socket.gethostname()}:{os.getpid()}:{_machine()}:{start}:{uuid.uuid4().hex[:8]}"


def is_gone(holder: str) -> bool:
    """Tell whether the process that called itself `holder` is known to have ended; False if that cannot be known."""
    parts = holder.rsplit(":", 4)
    if len(parts) != 5 or not parts[1].isdecimal() or _UNKNOWN in parts:
        return False
    host, pid, machine, start, _ = parts
    return [host, machine] == [socket.gethostname(), _machine()] and _has_ended(int(pid), start)


def _machine() -> str:
    """Return this boot of the machine and the pid namespace in it."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot[:8]}.{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return _UNKNOWN


def _has_ended(pid: int, start: str) -> bool:
    with suppress(PermissionError):  # it is another user's
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
    fields = _stat(pid)
    return fields is not None and (fields[_STATE] in _ENDED or fields[_START] != start)


def _stat(pid: int) -> list[str] | None:
    """Return what /proc says of a process after its command's name; None where it says nothing."""
    try:
        return (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
