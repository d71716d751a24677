"""How well a step is confined, and what this platform can do."""

from enum import StrEnum
from functools import cache

from ftpipeline.engine.child import landlock, seccomp
from ftpipeline.errors import WorkerError


class Level(StrEnum):
    """How well a step is confined; it is recorded in the lineage."""

    ENFORCED = "enforced"
    """Landlock denies whatever is not declared, and every open is recorded outside the step's process."""
    OBSERVED = "observed"
    """An audit hook inside the step sees what Python opens; native readers go unseen."""


@cache
def best_level() -> Level:
    """Return the best level of this platform; the kernel is asked once."""
    return Level.ENFORCED if landlock.abi() > 0 and seccomp.is_available() else Level.OBSERVED


def require(level: Level) -> None:
    """Return if this platform can confine a step at `level`.

    Raises:
        WorkerError: it cannot.
    """
    if level is Level.ENFORCED and best_level() is not Level.ENFORCED:
        raise WorkerError(
            "steps cannot be confined at level 'enforced': this kernel offers no Landlock or no seccomp notification; "
            "run on Linux 5.13 or newer, or accept the level 'observed'"
        )
