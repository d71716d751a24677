"""What a step was seen to use, judged against its policy; what it swallows is found here all the same."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.util import source_from_cache
from typing import Any

from ftpipeline.engine.child.access import Access
from ftpipeline.engine.child.policy import SHARED_MEMORY, Policy

_CLOCK_TICK = 0.05  # seconds that a file system's clock may be behind

Locate = Callable[[], str]
"""Returns `file:line in function` of the step's code that is at work now; empty if it is not known."""


class Kind(StrEnum):
    """What was used without being declared."""

    READ = "read"
    MODULE = "module"
    ENVIRONMENT = "environment"
    NETWORK = "network"


@dataclass(frozen=True)
class Violation:
    """An undeclared use.

    Attributes:
        kind: of what.
        subject: path, variable or address.
        where: `file:line in function` of the step's code; empty if it is not known.
    """

    kind: Kind
    subject: str
    where: str


class Findings:
    """Collects what one step uses."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._started = time.time()
        self._opens: set[str] = set()
        self._violations: dict[tuple[Kind, str], Violation] = {}

    def judge_path(self, path: str, access: Access, locate: Locate) -> bool:
        """Record the use of the absolute path `path`; return whether it is granted.

        What does not exist is no violation: a step learns nothing from it but its absence, and so do the libraries that
        look for their configuration in many places. Neither is a write that is denied: nothing comes of it.
        """
        real = os.path.realpath(path)
        if _is_of_process(real):
            return real.split(os.sep)[2] == str(os.getpid())
        if self._policy.allows(real, access) and not self._is_left_behind(real):
            self._note_open(real, access)
            return True
        is_unheeded = access == Access.LIST and real in self._policy.unheeded
        if access != Access.WRITE and os.path.lexists(real) and not is_unheeded:
            self._add_path(real, locate)
        return False

    def may_write(self, path: str) -> bool:
        """Tell whether the step may make and use what stands at the real path `path`."""
        return self._policy.allows(path, Access.WRITE)

    def judge_environment(self, name: str, locate: Locate) -> None:
        """Record the use of a variable that is hidden from the step."""
        self._add(Kind.ENVIRONMENT, name, locate)

    def judge_address(self, address: str, locate: Locate) -> None:
        """Record the use of the network."""
        self._add(Kind.NETWORK, address, locate)

    def report(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "opens": sorted(self._opens),
            "violations": [asdict(violation) for violation in self._violations.values()],
        }

    def _note_open(self, real: str, access: Access) -> None:
        is_product = self._policy.allows(real, Access.WRITE)
        if Access.READ in access and not is_product and not self._policy.is_installed(real) and os.path.lexists(real):
            self._opens.add(_source(real))

    def _is_left_behind(self, real: str) -> bool:
        """Shared memory is open to all; what stood there before the step began is an input that nobody declared."""
        if not real.startswith(SHARED_MEMORY + os.sep):
            return False
        return os.path.lexists(real) and os.lstat(real).st_mtime < self._started - _CLOCK_TICK

    def _add_path(self, real: str, locate: Locate) -> None:
        if self._policy.is_first_party(real) and real.endswith((".py", ".pyc")):
            self._add(Kind.MODULE, _source(real), locate)
        else:
            self._add(Kind.READ, real, locate)

    def _add(self, kind: Kind, subject: str, locate: Locate) -> None:
        if (kind, subject) not in self._violations:
            self._violations[kind, subject] = Violation(kind, subject, locate())


def _is_of_process(real: str) -> bool:
    """What the kernel tells of a process is denied for others, and no fault of the step."""
    return real.startswith("/proc/") and real.split(os.sep)[2].isdecimal()


def _source(real: str) -> str:
    """Return the module that a compiled file was made from; any other file as it is."""
    return source_from_cache(real) if real.endswith(".pyc") and "__pycache__" in real else real


def violations_of(reports: Iterable[dict[str, Any]]) -> list[Violation]:
    """Return the violations of several reports about one step, in the order in which they were found."""
    documents = [document for report in reports for document in report["violations"]]
    return [Violation(Kind(it["kind"]), it["subject"], it["where"]) for it in documents]
