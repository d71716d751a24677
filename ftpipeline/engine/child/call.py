"""One call of a step as its caller sees it: what it hears, and the end of it."""

import json
import os
import select
import selectors
import socket
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from ftpipeline.engine.child import frames, processes
from ftpipeline.errors import WorkerError

_HEARD = ("progress", "log")
_PATIENCE_SECONDS = 5.0
_CHUNK = 1 << 16


class Call:
    """A context in which a step runs; when it is left, every process of the step has ended.

    Args:
        token: mark of the step's processes.
        hear: hears progress and log messages.
    """

    def __init__(self, token: int, hear: Callable[[Mapping[str, Any]], None]) -> None:
        self._token = token
        self._hear = hear
        self._line, self._their_line = socket.socketpair()
        self._messages, self._their_messages = os.pipe()
        os.set_blocking(self._messages, False)
        self._partial = b""
        self._last: dict[str, Any] | None = None
        self._is_handed_over = False
        self._has_report = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._let_go()
        try:
            self._hang_up()
        finally:
            self._line.close()
            os.close(self._messages)

    def descriptors(self) -> list[int]:
        """Return what the zygote is given: the line to the warden, standard output and error, the message pipe."""
        return [self._their_line.fileno(), 1, 2, self._their_messages]

    def is_taken(self) -> bool:
        """Wait for a warden; return False if the zygote ended before it made one."""
        self._let_go()
        return frames.receive(self._line) is not None

    def converse(self, document: bytes) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Give the warden its work, and pass on messages until it reports.

        Returns:
            The warden's report, and the last word of the step if it had one.

        Raises:
            WorkerError: the warden was killed or failed.
        """
        try:
            frames.send(self._line, document)
        except BrokenPipeError as error:
            raise WorkerError("the warden of the step was killed before it began; run again") from error
        with selectors.DefaultSelector() as selector:
            selector.register(self._line, selectors.EVENT_READ)
            selector.register(self._messages, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if self._messages in ready and not self._pass_on():
                    selector.unregister(self._messages)
                if self._line.fileno() in ready:
                    return self._report(), self._last

    def _report(self) -> dict[str, Any]:
        body = frames.receive(self._line)
        if body is None:
            raise WorkerError("the warden of the step was killed, and the step with it; run again")
        self._has_report = True
        self._pass_on()
        report: dict[str, Any] = json.loads(body)
        if "failed" in report:
            raise WorkerError(f"the warden of the step failed ({report['failed']}); nothing of the step is left")
        return report

    def _pass_on(self) -> bool:
        """Hear what has been written so far; return False at the end. A line that was cut by a kill is never whole."""
        while True:
            try:
                chunk = os.read(self._messages, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            *lines, self._partial = (self._partial + chunk).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if any(name in message for name in _HEARD):
            self._hear(message)
        else:
            self._last = message

    def _let_go(self) -> None:
        """Close the ends that have been handed over, so that the end of the others is seen here."""
        if not self._is_handed_over:
            self._is_handed_over = True
            self._their_line.close()
            os.close(self._their_messages)

    def _hang_up(self) -> None:
        """Shut the line: the warden kills the step, and ends; if it was killed itself, find what it left."""
        try:
            self._line.shutdown(socket.SHUT_WR)
        except OSError:
            self._has_report = False  # no warden is there to have tidied up after itself
        self._await_end()
        if not self._has_report:
            processes.kill_marked(self._token)

    def _await_end(self) -> None:
        """Wait until the warden has ended, reading over what it still says."""
        while select.select([self._line], [], [], _PATIENCE_SECONDS)[0]:
            try:
                if not self._line.recv(_CHUNK):
                    return
            except ConnectionResetError:
                return
