"""Finding the line of a step's own code, in this process or in a stack that faulthandler wrote down."""

import os
import re
import sys
from collections.abc import Callable
from types import FrameType

_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)

IsOwn = Callable[[str], bool]
"""Tells whether a real path is a source file of the step's project."""


def innermost(stack: str, is_own: IsOwn) -> str:
    """Return `file:line in function` of the first own frame; empty if there is none.

    Args:
        stack: what faulthandler wrote, the most recent call first.
        is_own: tells own source files.
    """
    for frame in _FRAME.finditer(stack):
        if _is_own_file(frame["file"], is_own):
            return f"{frame['file']}:{frame['line']} in {frame['function']}"
    return ""


def innermost_here(is_own: IsOwn) -> str:
    """Return `file:line in function` of the innermost own frame of this thread; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_own_file(frame.f_code.co_filename, is_own):
            return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def is_called_here(is_own: IsOwn, skipped: Callable[[str], bool]) -> bool:
    """Tell whether the innermost frame of this thread that is not of a skipped file is an own one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and skipped(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and _is_own_file(frame.f_code.co_filename, is_own)


def _is_own_file(file: str, is_own: IsOwn) -> bool:
    """A name such as `<frozen os>` is no file."""
    return not file.startswith("<") and is_own(os.path.realpath(file))
