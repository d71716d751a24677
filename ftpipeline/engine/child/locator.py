"""Learning which line of a step's code waits in a system call."""

import os
import select
from collections.abc import Callable

from ftpipeline.engine.child import kernel
from ftpipeline.engine.child.other_process import name_of, process_of
from ftpipeline.engine.child.stack import innermost

_FIRST_SECONDS = 0.25
_NEXT_SECONDS = 0.02
_MOST_LOCATED = 20


class Locator:
    """Learns which line of the step's code waits in a system call: a signal makes its process write down its stack.

    Args:
        process: the step's process.
        number: the signal that faulthandler answers there.
        stacks: descriptor to read the stacks from.
        is_own: tells whether a source file is of the step's project.
    """

    def __init__(self, process: int, number: int, stacks: int, is_own: Callable[[str], bool]) -> None:
        self._process = process
        self._number = number
        self._stacks = stacks
        self._is_own = is_own
        self._left = _MOST_LOCATED

    def locate(self, thread: int) -> str:
        """Return `file:line in function`, or the name of the program if it is another than the step's."""
        if process_of(thread) != self._process:
            return f"the program {name_of(thread)}"
        if not self._left:
            return ""
        self._left -= 1
        kernel.signal_thread(self._process, thread, self._number)
        return innermost(self._written(), self._is_own)

    def _written(self) -> str:
        """Read until the stack is complete; it comes in many small pieces."""
        stack = bytearray()
        patience = _FIRST_SECONDS
        while select.select([self._stacks], [], [], patience)[0]:
            stack += os.read(self._stacks, 1 << 16)
            patience = _NEXT_SECONDS
        return stack.decode(errors="replace")
