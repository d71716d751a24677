"""Stamps: whether a file or folder certainly is what it was when this process read it, without reading it again."""

import os
import time

Stamp = tuple[int, int, int, int]
"""Modification time and change time in ns, size and inode; all -1 if it is missing.

The change time is in it because copies and `touch -d` can set the modification time, and nobody the change time.
"""

_MISSING: Stamp = (-1, -1, -1, -1)
_UNSETTLED: Stamp = (-2, -2, -2, -2)
_SETTLED_NS = 100_000_000  # a file system's clock may tick this coarsely: a younger file could change unnoticed


def stamp_of(path: str) -> Stamp:
    """Return the stamp of a file or folder as it is now."""
    try:
        status = os.stat(path)
    except OSError:
        return _MISSING
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def settled_stamp(path: str) -> Stamp:
    """Return the stamp of `path`, to be taken before it is read; one that nothing equals while its change is recent."""
    stamp = stamp_of(path)
    return _UNSETTLED if time.time_ns() - stamp[1] < _SETTLED_NS else stamp


def is_unchanged(path: str, stamp: Stamp) -> bool:
    """Whether `path` certainly still is what it was when its settled stamp was `stamp`."""
    return stamp != _UNSETTLED and stamp_of(path) == stamp
