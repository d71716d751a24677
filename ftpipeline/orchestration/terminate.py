"""Ends runs as the UI's Terminate does: in order, never by force, so that what trains can save and slots come free."""

import time
from collections.abc import Collection

import dagster as dg

from ftpipeline.steps.ports import Terminator

_PATIENCE_SECONDS, _POLL_SECONDS = 120.0, 0.5


class DagsterTerminator(Terminator):
    """Ends runs of a Dagster instance.

    Args:
        instance: the instance that the runs belong to.
        patience: seconds to wait for runs that were told to end.
    """

    def __init__(self, instance: dg.DagsterInstance, patience: float = _PATIENCE_SECONDS) -> None:
        self._instance = instance
        self._patience = patience

    def _terminate(self, run_ids: Collection[str]) -> frozenset[str]:
        told = {run_id for run_id in run_ids if self._is_going_on(run_id) and self._tell(run_id)}
        deadline = time.monotonic() + self._patience
        while any(map(self._is_going_on, told)) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return frozenset(run_id for run_id in run_ids if not self._is_going_on(run_id))

    def _tell(self, run_id: str) -> bool:
        """Tell a queued run not to start, or a started one to end; False for one that this instance did not launch."""
        return self._instance.run_coordinator.cancel_run(run_id)

    def _is_going_on(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        return run is not None and not run.is_finished
