"""What a step's process tells its caller while it runs: JSON lines on a pipe."""

import json
import logging
import os
import threading
import time
from typing import Any

_PROGRESS_SECONDS = 0.2


class Messages:
    """Writes messages, from any thread, each as a whole."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """Write one message; this waits while the pipe is full."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        with self._lock:
            while data:
                data = data[os.write(self._pipe, data) :]


class ProgressMessages:
    """The `progress` of a step: passes on a few calls a second, and the last."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._next = 0.0

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Tell of progress."""
        now = time.monotonic()
        if now >= self._next or done >= total:
            self._next = now + _PROGRESS_SECONDS
            self._messages.send({"progress": [done, total, note]})


class LogMessages(logging.Handler):
    """Passes on what the step and its libraries log."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(logging.INFO)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        self._messages.send({"log": [record.levelname, self.format(record)]})
