"""What all assets of a code location share: the home, opened once a process, and who listens."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ftpipeline.records import StepObserver, StepResult
from ftpipeline.store.home import Home

if TYPE_CHECKING:
    from ftpipeline.store.opened import Store  # with the database library, which loading a code location does not need

StageListener = Callable[[str, StepResult], None]
"""Hears of every finished stage: its name and result."""


def unheard(stage: str, result: StepResult) -> None:
    """Tell nobody."""


@dataclass(eq=False)
class Workbench:
    """The home of a code location; one object is one workbench, so that it can key a cache.

    Attributes:
        home: where everything is kept.
        on_stage: called after each stage; the command line prints its lines from it.
        observer: hears every step, beside Dagster's log; the command line draws its progress from it.
    """

    home: Home
    on_stage: StageListener = unheard
    observer: StepObserver | None = None
    _stores: dict[int, "Store"] = field(default_factory=dict)

    @property
    def store(self) -> "Store":
        """Return this process's open store; a forked child opens its own."""
        process = os.getpid()
        if process not in self._stores:
            self._stores = {process: self.home.open()}
        return self._stores[process]
