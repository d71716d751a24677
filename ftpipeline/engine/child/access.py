"""The ways in which a process may use a path."""

import os
from enum import IntFlag

_O_PATH = getattr(os, "O_PATH", 0)  # Linux alone has these two
_O_TMPFILE = getattr(os, "O_TMPFILE", 0)


class Access(IntFlag):
    """What is granted at a path and beneath it, or asked for by an open."""

    READ = 1
    """Read files."""
    LIST = 2
    """List folders."""
    WRITE = 4
    """Make, change, rename and remove files and folders."""
    EXECUTE = 8
    """Run programs; this includes reading them."""


USE = Access.READ | Access.LIST | Access.EXECUTE
LOOK = Access.READ | Access.LIST
WORK = Access.READ | Access.LIST | Access.WRITE


def asked_by(flags: int) -> Access:
    """Return what an open with these flags asks for; nothing if it only names the file."""
    if flags & _O_PATH:
        return Access(0)
    if _O_TMPFILE and flags & _O_TMPFILE == _O_TMPFILE:
        return Access.WRITE
    if flags & os.O_DIRECTORY:
        return Access.LIST
    mode = flags & os.O_ACCMODE
    if mode == os.O_RDONLY:
        return Access.READ
    return Access.WRITE if mode == os.O_WRONLY or flags & os.O_TRUNC else Access.READ | Access.WRITE


def refined(path: str, access: Access) -> Access:
    """Return what `access` means for what is at `path`: reading a folder is listing it, a new file is only written."""
    if Access.WRITE in access:
        return access if os.path.lexists(path) else Access.WRITE
    return Access.LIST if access == Access.READ and os.path.isdir(path) else access
