"""Seeing, inside the step's process, what Python code uses.

At each level these are environment variables; at level `observed` also files, programs and the network.
"""

import errno
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ftpipeline.engine.child.access import Access, asked_by, refined
from ftpipeline.engine.child.findings import Findings
from ftpipeline.engine.child.policy import Policy
from ftpipeline.engine.child.stack import innermost_here, is_called_here


def record_environment(hidden: frozenset[str], policy: Policy, findings: Findings) -> None:
    """Record each use of a hidden variable by the step's own code.

    What libraries look for is just absent, for each step alike.
    """

    class RecordingEnviron(os._Environ[str]):
        def __getitem__(self, key: str) -> str:
            if key in hidden and is_called_here(policy.is_first_party, _is_mapping_code):
                findings.judge_environment(key, lambda: innermost_here(policy.is_first_party))
            return super().__getitem__(key)

    os.environ.__class__ = RecordingEnviron


def _is_mapping_code(file: str) -> bool:
    return file in (__file__, os.__file__) or file.startswith("<frozen ")


def observe(policy: Policy, findings: Findings) -> None:
    """Judge what Python code of this process opens, runs and connects to from now on, and deny what is not granted.

    It cannot be undone.
    """
    sys.addaudithook(_Observer(policy, findings))


class _Observer:
    """An audit hook."""

    def __init__(self, policy: Policy, findings: Findings) -> None:
        self._policy = policy
        self._findings = findings
        self._own = threading.local()
        self._judges: Mapping[str, Callable[..., None]] = {
            "open": self._opens,
            "os.listdir": self._lists,
            "os.scandir": self._lists,
            "subprocess.Popen": self._runs,
            "os.exec": self._runs,
            "os.posix_spawn": self._runs,
            "socket.connect": self._connects,
            "socket.sendto": self._connects,
        }

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        judge = self._judges.get(event)
        if judge is None or getattr(self._own, "is_busy", False):
            return
        self._own.is_busy = True  # judging looks at files itself
        try:
            judge(*arguments)
        finally:
            self._own.is_busy = False

    def _opens(self, path: object, mode: str | None, flags: int) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            self._judge(path, asked_by(flags))

    def _lists(self, path: object = None) -> None:
        if path is None or isinstance(path, str | bytes | os.PathLike):
            self._judge("." if path is None else path, Access.LIST)

    def _runs(self, program: object, *_: object) -> None:
        if isinstance(program, str | bytes | os.PathLike) and os.path.dirname(os.fsdecode(program)):
            self._judge(program, Access.EXECUTE)  # a bare name is looked for in the folders of PATH

    def _connects(self, _: object, address: object) -> None:
        if isinstance(address, tuple):
            self._findings.judge_address(":".join(map(str, address[:2])), self._locate)
            raise PermissionError(f"connecting to {address[0]} is denied to a pure step")

    def _judge(self, path: "str | bytes | os.PathLike[Any]", access: Access) -> None:
        name = os.path.abspath(os.fsdecode(path))
        asked = refined(name, access)
        granted = not asked or self._findings.judge_path(name, asked, self._locate)
        if not granted and (os.path.lexists(name) or Access.WRITE in asked):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    def _locate(self) -> str:
        return innermost_here(self._policy.is_first_party)
