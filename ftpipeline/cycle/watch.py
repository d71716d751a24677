"""One look at the fleet: what is new is scanned, and whatever is found to have diverged becomes an incident."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ftpipeline.cycle.detector_states import DetectorStates
from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.incident_opening import open_incidents
from ftpipeline.cycle.isolation_records import Signer
from ftpipeline.cycle.scan import DEFAULT_LIMITS, Limits, Scan, Verdicts, scan
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.receipts import SigningKey
from ftpipeline.store.opened import Store


@dataclass(frozen=True)
class Watch:
    """What one look saw.

    Attributes:
        scan: the verdicts.
        opened: incidents that it opened.
        waiting: all incidents that wait to be isolated, oldest first.
    """

    scan: Scan
    opened: tuple[Incident, ...]
    waiting: tuple[Incident, ...]


def watch(store: Store, ledger: Ledger, limits: Limits = DEFAULT_LIMITS) -> Watch:
    """Look at what is new of the jobs and open the incidents that it amounts to.

    An incident stands before its job is remembered as looked at: who dies in between finds it again.

    Raises:
        LedgerError: the ledger cannot be read.
        DatabaseError: the database cannot be read or written.
        EnvironmentProblemError: there is no key to sign with.
    """
    incidents, signer = Incidents(store.database), signer_of(store)
    opened: list[Incident] = []

    def heard(verdicts: Verdicts) -> None:
        opened.extend(open_incidents(ledger, incidents, signer, verdicts))

    found = scan(ledger, DetectorStates(store.database), limits, heard)
    return Watch(found, tuple(opened), tuple(incidents.waiting()))


def signer_of(store: Store) -> Signer:
    """Return who signs for a home."""
    return Signer(store.blobs, SigningKey.of_home(store.home.root))


def is_stale(store: Store, oldest: timedelta) -> bool:
    """Tell whether the last complete scan is longer ago than `oldest`, or lies in a future that no clock has seen."""
    last = DetectorStates(store.database).last_finished()
    return last is None or not timedelta(0) <= datetime.now(UTC) - last <= oldest
