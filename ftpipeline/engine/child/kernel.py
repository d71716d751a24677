"""The system calls that Python has no name for, by ctypes; each raises OSError as those of `os` do."""

import ctypes
import os
import platform
import signal
import sys

IS_LINUX = sys.platform == "linux"
MACHINE = platform.machine()

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_TGKILL = {"x86_64": 234, "aarch64": 131}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call.

    Args:
        number: the call's number on this machine.
        arguments: integers, buffers passed by address, or None for a null pointer.

    Raises:
        OSError: the kernel refused.
    """
    converted = [ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *converted)
    return _checked(result)


def end_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send `number` to this process when its parent ends; end now if it has already ended.

    Args:
        parent: process id of the parent, taken before this process was made.
        number: the signal; it outlives an exec.
    """
    if IS_LINUX:
        _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, also of one with a session of its own."""
    if IS_LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forgo_privileges() -> None:
    """Let no exec of this process or its children gain privileges; the kernel asks for it before a confinement."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def signal_thread(process: int, thread: int, number: int) -> None:
    """Send a signal to one thread of a process.

    Raises:
        ProcessLookupError: the thread has ended.
    """
    syscall(_TGKILL[MACHINE], process, thread, number)


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
