"""seccomp user notification: a supervisor in another process hears of every open, exec and connect before it happens.

The paths heard are advisory (a thread may rewrite them meanwhile); it is Landlock that enforces.
"""

import ctypes
import errno
import fcntl
import struct
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property

from ftpipeline.engine.child import kernel

_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
_NEW_LISTENER = 1 << 3
_RET_ALLOW, _RET_NOTIFY, _RET_ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_CONTINUE = 1
_NOTIFICATION = struct.Struct("=QII iIQ 6Q")
_RESPONSE = struct.Struct("=QqiI")

# Berkeley packet filter: load a word of the call's data, compare it with a constant, return a verdict.
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ADDRESS_LOW_AT, _ADDRESS_HIGH_AT = 0, 4, 48, 52


class Call(StrEnum):
    """A system call that is heard of."""

    OPEN = "open"
    OPENAT = "openat"
    OPENAT2 = "openat2"
    CREAT = "creat"
    EXECVE = "execve"
    EXECVEAT = "execveat"
    CONNECT = "connect"
    SENDTO = "sendto"


@dataclass(frozen=True)
class _Machine:
    """Numbers of one processor architecture."""

    architecture: int
    seccomp: int
    calls: dict[Call, int]

    @cached_property
    def names(self) -> dict[int, Call]:
        """The calls by their numbers."""
        return {number: call for call, number in self.calls.items()}


_IO_URING_SETUP = 425
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        {
            Call.OPEN: 2,
            Call.OPENAT: 257,
            Call.OPENAT2: 437,
            Call.CREAT: 85,
            Call.EXECVE: 59,
            Call.EXECVEAT: 322,
            Call.CONNECT: 42,
            Call.SENDTO: 44,
        },
    ),
    "aarch64": _Machine(
        0xC00000B7,
        277,
        {
            Call.OPENAT: 56,
            Call.OPENAT2: 437,
            Call.EXECVE: 221,
            Call.EXECVEAT: 281,
            Call.CONNECT: 203,
            Call.SENDTO: 206,
        },
    ),
}


@dataclass(frozen=True)
class Notification:
    """A system call that waits for an answer.

    Attributes:
        id: the kernel's name for it.
        thread: id of the thread that waits.
        call: which call it is.
        arguments: its six arguments, as unsigned integers.
    """

    id: int
    thread: int
    call: Call
    arguments: tuple[int, ...]


@cache
def is_available() -> bool:
    """Tell whether this kernel can notify of system calls on this machine."""
    machine = _MACHINES.get(kernel.MACHINE)
    if not kernel.IS_LINUX or machine is None:
        return False
    try:
        kernel.syscall(machine.seccomp, _GET_ACTION_AVAIL, 0, struct.pack("=I", _RET_NOTIFY))
    except OSError:
        return False
    return True


def install() -> int:
    """Filter the system calls of this thread and all that it starts.

    Returns:
        The descriptor that the supervisor listens at. Until it does, every call that is heard of waits.

    Raises:
        OSError: the kernel refused, for example because an outer filter has a supervisor already.
    """
    kernel.forgo_privileges()
    machine = _MACHINES[kernel.MACHINE]
    program = _program(machine)
    instructions = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("@HP", len(program), ctypes.addressof(instructions))
    return kernel.syscall(machine.seccomp, _SET_MODE_FILTER, _NEW_LISTENER, header)


def receive(listener: int) -> Notification | None:
    """Return the next notification; None if its thread has been killed meanwhile."""
    buffer = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except FileNotFoundError:
        return None
    identifier, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
    return Notification(identifier, thread, _MACHINES[kernel.MACHINE].names[number], tuple(arguments))


def is_valid(listener: int, notification: Notification) -> bool:
    """Tell whether the thread still waits, so that what was read from its memory was its own."""
    try:
        fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", notification.id))
    except FileNotFoundError:
        return False
    return True


def answer(listener: int, notification: Notification, error: int = 0) -> None:
    """Let the call go on, or fail it with the given errno."""
    response = _RESPONSE.pack(notification.id, 0, -error, 0 if error else _CONTINUE)
    try:
        fcntl.ioctl(listener, _SEND, response)
    except FileNotFoundError:
        return  # the thread was killed, or interrupted and asks again


def _program(machine: _Machine) -> list[bytes]:
    """Another architecture's calls pass unheard: Landlock denies them all the same."""
    program = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_IF_EQUAL, machine.architecture, 1, 0),
        _instruction(_RETURN, _RET_ALLOW),
        _instruction(_LOAD, _NUMBER_AT),
        # opens by io_uring would pass unheard; without it, libraries fall back to plain calls
        *_if_number(_IO_URING_SETUP, _RET_ERRNO | errno.ENOSYS),
    ]
    for call, number in machine.calls.items():
        program += _if_addressed(number) if call is Call.SENDTO else _if_number(number, _RET_NOTIFY)
    return [*program, _instruction(_RETURN, _RET_ALLOW)]


def _if_number(number: int, verdict: int) -> list[bytes]:
    return [_instruction(_IF_EQUAL, number, 0, 1), _instruction(_RETURN, verdict)]


def _if_addressed(number: int) -> list[bytes]:
    """Hear of a send only if it names an address: one on a connected socket was heard of when it was connected.

    This loses the call's number, so no comparison with another call may follow.
    """
    return [
        _instruction(_IF_EQUAL, number, 0, 5),
        _instruction(_LOAD, _ADDRESS_LOW_AT),
        _instruction(_IF_EQUAL, 0, 0, 2),
        _instruction(_LOAD, _ADDRESS_HIGH_AT),
        _instruction(_IF_EQUAL, 0, 1, 0),
        _instruction(_RETURN, _RET_NOTIFY),
    ]


def _instruction(code: int, constant: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, constant)
