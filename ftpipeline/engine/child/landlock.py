"""Landlock: the kernel denies this process and its children every file and TCP port that is not granted.

No privileges are needed. A confinement holds for the calling thread and what it starts later, for ever.
"""

import os
import stat
import struct
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from enum import IntFlag
from functools import cache

from ftpipeline.engine.child import kernel
from ftpipeline.engine.child.access import Access

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_FOR_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_NET_BIND, _NET_CONNECT = 1, 2
_SCOPE_ABSTRACT_UNIX_SOCKET, _SCOPE_SIGNAL = 1, 2
_ABI_WITH_NETWORK, _ABI_WITH_SCOPES = 4, 6


class _Right(IntFlag):
    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


_FIRST_ABI = _Right((1 << 13) - 1)
_SINCE = {2: _Right.REFER, 3: _Right.TRUNCATE, 5: _Right.IOCTL_DEV}
_OF_FILES = _Right.EXECUTE | _Right.WRITE_FILE | _Right.READ_FILE | _Right.TRUNCATE | _Right.IOCTL_DEV
_RIGHTS = {
    Access.READ: _Right.READ_FILE,
    Access.LIST: _Right.READ_DIR,
    Access.EXECUTE: _Right.EXECUTE | _Right.READ_FILE,
    Access.WRITE: ~(_Right.EXECUTE | _Right.READ_FILE | _Right.READ_DIR | _Right.MAKE_CHAR | _Right.MAKE_BLOCK),
}


@cache
def abi() -> int:
    """Return the version of Landlock in this kernel; 0 if there is none."""
    if not kernel.IS_LINUX:
        return 0
    try:
        return kernel.syscall(_CREATE_RULESET, None, 0, _ASK_FOR_VERSION)
    except OSError:
        return 0


def confine(grants: Mapping[str, Access], tcp_ports: Iterable[int] = ()) -> None:
    """Deny this thread, and all that it starts, everything but what is granted.

    Args:
        grants: path to what is granted at and beneath it; a path that does not exist grants nothing.
        tcp_ports: ports that may be connected to, where the kernel can tell (Landlock 4).

    Raises:
        OSError: the kernel has no Landlock, or refused.
    """
    kernel.forgo_privileges()
    handled = _handled_rights()
    with closing(_Ruleset(handled)) as ruleset:
        for path, access in grants.items():
            with suppress(FileNotFoundError, NotADirectoryError):
                ruleset.grant(path, access)
        if abi() >= _ABI_WITH_NETWORK:
            for port in tcp_ports:
                ruleset.grant_port(port)
        ruleset.restrict_self()


def _handled_rights() -> _Right:
    rights = _FIRST_ABI
    for since, right in _SINCE.items():
        if abi() >= since:
            rights |= right
    return rights


class _Ruleset:
    """A set of rules that is being made."""

    def __init__(self, handled: _Right) -> None:
        self._handled = handled
        fields = [int(handled)]
        if abi() >= _ABI_WITH_NETWORK:
            fields.append(_NET_BIND | _NET_CONNECT)
        if abi() >= _ABI_WITH_SCOPES:
            fields.append(_SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL)
        attributes = struct.pack(f"={len(fields)}Q", *fields)
        self._fd = kernel.syscall(_CREATE_RULESET, attributes, len(attributes), 0)

    def grant(self, path: str, access: Access) -> None:
        rights = _Right(0)
        for kind in access:
            rights |= _RIGHTS[kind]
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                rights &= _OF_FILES
            rights &= self._handled
            if rights:
                kernel.syscall(_ADD_RULE, self._fd, _PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
        finally:
            os.close(fd)

    def grant_port(self, port: int) -> None:
        kernel.syscall(_ADD_RULE, self._fd, _NET_PORT, struct.pack("=QQ", _NET_CONNECT, port), 0)

    def restrict_self(self) -> None:
        kernel.syscall(_RESTRICT_SELF, self._fd, 0)

    def close(self) -> None:
        os.close(self._fd)
