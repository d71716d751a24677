"""What one who waits for another's result does meanwhile: say so once, and end the lease of a holder that is gone."""

from ftpipeline.digest import Digest
from ftpipeline.engine.holder import is_gone
from ftpipeline.records import StepObserver
from ftpipeline.store.leases import Leases


class Waiting:
    """Called with the holder of a key's lease at every refusal.

    Args:
        leases: where the lease is kept.
        observer: hears once whom is waited for.
        step: the step that waits.
        key: the step key, which is the name of the lease.
    """

    def __init__(self, leases: Leases, observer: StepObserver, step: str, key: Digest) -> None:
        self._leases = leases
        self._observer = observer
        self._step = step
        self._key = key
        self._is_said = False

    def __call__(self, holder: str) -> None:
        """Hear that `holder` has the lease."""
        if is_gone(holder):
            self._observer.said(self._step, "info", f"{holder} has ended without its result; taking over")
            self._leases.disown(self._key, holder)
        elif not self._is_said:
            self._observer.said(self._step, "info", f"waiting for {holder}")
            self._is_said = True
