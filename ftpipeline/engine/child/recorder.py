"""The warden's ears: answers the notifications of a step's system calls and judges what they name."""

import errno
import ipaddress
import os
import socket
import stat
import struct
from contextlib import suppress

from ftpipeline.engine.child import seccomp
from ftpipeline.engine.child.access import Access, asked_by, refined
from ftpipeline.engine.child.findings import Findings
from ftpipeline.engine.child.locator import Locator
from ftpipeline.engine.child.other_process import process_of, read_memory, read_text
from ftpipeline.engine.child.seccomp import Call, Notification

_CURRENT_FOLDER = -100
_QUIET_SOCKETS = ("/run/nscd/socket", "/dev/log")  # the C library tries these by itself


class Recorder:
    """Hears one step."""

    def __init__(self, listener: int, findings: Findings, locator: Locator) -> None:
        self._listener = listener
        self._findings = findings
        self._locator = locator
        self._granted: set[tuple[str, Access]] = set()

    def fileno(self) -> int:
        """Return the descriptor to poll for reading."""
        return self._listener

    def hear(self) -> None:
        """Judge and answer one notification."""
        notification = seccomp.receive(self._listener)
        if notification is None:
            return
        error = 0
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread was killed: nobody waits for the answer
            error = self._judge(notification)
        seccomp.answer(self._listener, notification, error)

    def _judge(self, notification: Notification) -> int:
        if notification.call in (Call.CONNECT, Call.SENDTO):
            return self._judge_address(notification)
        path, access = _opened(notification)
        is_known = not path or not access or (path, access) in self._granted
        if not is_known and seccomp.is_valid(self._listener, notification):
            self._judge_path(path, access, notification.thread)
        return 0  # the kernel decides: Landlock denies what is not granted

    def _judge_path(self, path: str, access: Access, thread: int) -> None:
        if self._findings.judge_path(path, access, lambda: self._locator.locate(thread)):
            self._granted.add((path, access))

    def _judge_address(self, notification: Notification) -> int:
        connects = notification.call is Call.CONNECT
        address, size = notification.arguments[1:3] if connects else notification.arguments[4:6]
        data = read_memory(notification.thread, address, size)
        name = _address(data)
        if not name or not seccomp.is_valid(self._listener, notification):
            return 0
        if name.startswith("/") and (name in _QUIET_SOCKETS or self._findings.may_write(name)):
            return 0
        self._findings.judge_address(name, lambda: self._locator.locate(notification.thread))
        return errno.EACCES


def _opened(notification: Notification) -> tuple[str, Access]:
    """Return the absolute path and what is asked of it."""
    thread, arguments = notification.thread, notification.arguments
    match notification.call:
        case Call.OPEN:
            folder, address, access = _CURRENT_FOLDER, arguments[0], asked_by(arguments[1])
        case Call.CREAT:
            folder, address, access = _CURRENT_FOLDER, arguments[0], Access.WRITE
        case Call.OPENAT:
            folder, address, access = arguments[0], arguments[1], asked_by(arguments[2])
        case Call.OPENAT2:
            flags = struct.unpack("=Q", read_memory(thread, arguments[2], 8))[0]
            folder, address, access = arguments[0], arguments[1], asked_by(flags)
        case Call.EXECVE:
            folder, address, access = _CURRENT_FOLDER, arguments[0], Access.EXECUTE
        case _:
            folder, address, access = arguments[0], arguments[1], Access.EXECUTE
    path = _absolute(thread, folder, read_text(thread, address))
    return path, refined(path, access)


def _absolute(thread: int, folder: int, path: str) -> str:
    if not path:
        return ""
    if path.startswith("/proc/self/"):
        return f"/proc/{process_of(thread)}/{path.removeprefix('/proc/self/')}"
    if path.startswith("/"):
        return path
    number = struct.unpack("=i", struct.pack("=I", folder & 0xFFFFFFFF))[0]
    place = "cwd" if number == _CURRENT_FOLDER else f"fd/{number}"
    return os.path.join(os.readlink(f"/proc/{thread}/{place}"), path)


def _address(data: bytes) -> str:
    """Return the address as text; empty for a kind that leads to no other machine or program's data."""
    family = struct.unpack_from("=H", data)[0] if len(data) >= 2 else socket.AF_UNSPEC
    if family == socket.AF_INET and len(data) >= 8:
        return f"{ipaddress.IPv4Address(data[4:8])}:{struct.unpack_from('!H', data, 2)[0]}"
    if family == socket.AF_INET6 and len(data) >= 24:
        return f"[{ipaddress.IPv6Address(data[8:24])}]:{struct.unpack_from('!H', data, 2)[0]}"
    if family == socket.AF_UNIX and data[2:3] == b"/":
        path = os.path.realpath(os.fsdecode(data[2:].partition(b"\0")[0]))
        return path if os.path.exists(path) and stat.S_ISSOCK(os.stat(path).st_mode) else ""
    return ""
