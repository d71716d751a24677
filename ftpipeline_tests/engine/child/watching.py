"""Watching processes from outside."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class Ids:
    """Process ids of a running step."""

    step: int
    child: int
    detached: int
    warden: int
    zygote: int

    @property
    def own(self) -> tuple[int, ...]:
        """What must be gone when the step has ended."""
        return self.step, self.child, self.detached, self.warden


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def ids_in(out: Path) -> Ids:
    """Wait until the step has written its ids down."""
    wait_for(lambda: (out / "pids").exists())
    step, child, detached, warden = map(int, (out / "pids").read_text().split())
    return Ids(step, child, detached, warden, _parent(warden))


def wait_for(condition: Callable[[], bool]) -> None:
    """Return once the condition holds; fail if it never does."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def is_alive(process: int) -> bool:
    """A zombie is no longer alive; its parent is the test's own process or init."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(processes: tuple[int, ...]) -> bool:
    """Tell whether all of the processes have ended."""
    return not any(map(is_alive, processes))
