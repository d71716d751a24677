"""Errors across a process border: nothing is pickled, so that no code of the step runs in its caller's process.

An error of this package or of Python itself comes back as one of its class, with the same message; another one as a
StepFailedError that names it. Its traceback shows the frames that it was raised in.
"""

import builtins
import json
import sys
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from ftpipeline import errors
from ftpipeline.errors import FtpipelineError, StepFailedError

_DEEPEST_CAUSE = 5
_MOST_FRAMES = 50


def describe(
    error: BaseException, is_shown: Callable[[str], bool], is_own: Callable[[str], bool], depth: int = _DEEPEST_CAUSE
) -> dict[str, Any]:
    """Return an error as JSON.

    Args:
        error: the error, with its traceback.
        is_shown: tells whether frames of a source file are kept.
        is_own: tells whether a source file is of the step's project.
        depth: how many causes are followed.
    """
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    frames: list[tuple[str, int, str]] = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if is_shown(frame.f_code.co_filename)
    ]
    return {
        "classes": [[kind.__module__, kind.__qualname__] for kind in type(error).__mro__],
        "message": str(error),
        "arguments": _plain(_arguments(error)),
        "attributes": {name: value for name, value in vars(error).items() if _plain(value) is not None},
        "notes": list(getattr(error, "__notes__", ())),
        "frames": frames[-_MOST_FRAMES:],
        "at": next((frame for frame in reversed(frames) if is_own(frame[0])), None),
        "cause": describe(cause, is_shown, is_own, depth - 1) if cause is not None and depth else None,
    }


def _arguments(error: BaseException) -> list[Any]:
    """What the constructor takes; OSError keeps its file's name beside its `args`."""
    return list(error.__reduce__()[1]) if type(error).__module__ == "builtins" else list(error.args)


def rebuild(description: dict[str, Any]) -> Exception:
    """Return the error that was described, with a traceback of the frames that it was raised in."""
    error = _own_error(description) or _builtin_error(description) or _unknown_error(description)
    for note in description["notes"]:
        error.add_note(note)
    if description["at"] is not None:
        file, line, function = description["at"]
        error.add_note(f"raised in the step's process at {file}:{line} in {function}")
    if description["cause"] is not None:
        error.__cause__ = rebuild(description["cause"])
    return error.with_traceback(_traceback(description["frames"]))


def _own_error(description: dict[str, Any]) -> Exception | None:
    """The nearest class of this package's tree, with its data; its constructor may want other arguments."""
    own = [name for module, name in description["classes"] if module == errors.__name__]
    if not own:
        return None
    kind: type[FtpipelineError] = getattr(errors, own[0])
    error = kind.__new__(kind)
    error.args = (description["message"],)
    vars(error).update({name: value for name, value in description["attributes"].items() if name != "__notes__"})
    return error


def _builtin_error(description: dict[str, Any]) -> Exception | None:
    """The very class, if its own arguments make the same message again."""
    module, name = description["classes"][0]
    kind = getattr(builtins, name, None) if module == "builtins" else None
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or description["arguments"] is None:
        return None
    try:
        error = kind(*description["arguments"])
    except TypeError:
        return None
    return error if str(error) == description["message"] else None


def _unknown_error(description: dict[str, Any]) -> Exception:
    _, name = description["classes"][0]
    return StepFailedError(f"the step raised {name}: {description['message']}; correct the step or its input")


def _plain(value: Any) -> Any:
    """Return a value if it is the same after it has crossed; None otherwise."""
    try:
        return value if json.loads(json.dumps(value, allow_nan=False)) == value else None
    except (TypeError, ValueError):
        return None


def _traceback(frames: list[tuple[str, int, str]]) -> TracebackType | None:
    """Return a traceback that prints as one of these frames would, outermost first."""
    built: TracebackType | None = None
    for file, line, function in reversed(frames):
        built = TracebackType(built, _frame(file, line, function), -1, line)
    return built


def _frame(file: str, line: int, function: str) -> FrameType:
    """Return a frame of a function that does nothing but stand where another one stood."""
    code = _stand_in.__code__.replace(co_filename=file, co_name=function, co_firstlineno=line)
    frame: FrameType = eval(code)
    return frame


def _stand_in() -> FrameType:
    return sys._getframe()
