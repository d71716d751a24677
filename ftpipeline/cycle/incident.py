"""Incidents: confirmed divergences, each under a name that whoever finds it again gives it too.

Laws: a divergence is one incident, however often and by whomever it is found; an incident is open until it is isolated;
what was signed about it is never replaced.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, select, update

from ftpipeline.digest import Digest, canonical_json
from ftpipeline.errors import UnknownNameError
from ftpipeline.guard.lineage import Incident as Divergence
from ftpipeline.guard.lineage import Position
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.results import utc_text
from ftpipeline.store.tables import guard_incidents


@dataclass(frozen=True)
class Incident:
    """A confirmed divergence of one attempt of a job.

    Attributes:
        name: what it is called everywhere.
        job_id: the job that diverged.
        attempt: its attempt that did.
        onset: first step at which the disturbance may be seen.
        last_good: last step that is not in doubt; None if there is none.
        opened: UTC, ISO 8601.
        divergence: the divergence_detection_receipt.
        planned: the isolation_action_receipt from before anything was done; None until there is one.
        executed: the one from after all of it; None while the incident is open.
        isolated: when it was isolated, UTC, ISO 8601; None while it is open.
        report: what was found and done; None while it is open.
    """

    name: str
    job_id: str
    attempt: int
    onset: int
    last_good: int | None
    opened: str
    divergence: Digest
    planned: Digest | None = None
    executed: Digest | None = None
    isolated: str | None = None
    report: Mapping[str, Any] | None = None

    @property
    def traced(self) -> Divergence:
        """The divergence as a trace takes it."""
        good = None if self.last_good is None else Position(self.attempt, self.last_good)
        return Divergence(self.job_id, Position(self.attempt, self.onset), good)


class Incidents:
    """The table of incidents."""

    def __init__(self, database: Database) -> None:
        """Keep the incidents in `database`."""
        self._database = database

    def open(self, incident: Incident) -> Incident:
        """Record an incident, unless it is known, and return what is recorded."""
        with self._database.write() as connection:
            one_writer(connection, guard_incidents)
            known = _find(connection, incident.name)
            if known is None:
                connection.execute(guard_incidents.insert().values(_row(incident)))
            return incident if known is None else known

    def find(self, name: str) -> Incident | None:
        """Return the incident of that name, if there is one."""
        with self._database.read() as connection:
            return _find(connection, name)

    def get(self, name: str) -> Incident:
        """Return the incident of that name.

        Raises:
            UnknownNameError: there is none.
        """
        found = self.find(name)
        if found is None:
            raise UnknownNameError(f"no incident is called {name!r}; scan the ledger, or check the name")
        return found

    def all(self) -> list[Incident]:
        """Return every incident, oldest first."""
        query = select(guard_incidents).order_by(guard_incidents.c.opened, guard_incidents.c.incident)
        with self._database.read() as connection:
            return [_incident(row) for row in connection.execute(query)]

    def waiting(self) -> list[Incident]:
        """Return the incidents that are not isolated yet, oldest first."""
        return [incident for incident in self.all() if incident.isolated is None]

    def plan(self, name: str, receipt: Digest) -> Digest:
        """Record the receipt of the plan, unless there is one, and return what is recorded."""
        with self._database.write() as connection:
            unplanned = (guard_incidents.c.incident == name, guard_incidents.c.planned.is_(None))
            connection.execute(update(guard_incidents).where(*unplanned).values(planned=receipt))
            return Digest(connection.execute(_select(name)).one().planned)

    def close(self, name: str, receipt: Digest, report: Mapping[str, Any]) -> None:
        """Record that an incident is isolated; the first report stands."""
        text = canonical_json(report).decode()
        values = {"executed": receipt, "isolated": utc_text(datetime.now(UTC)), "report": text}
        with self._database.write() as connection:
            is_open = (guard_incidents.c.incident == name, guard_incidents.c.isolated.is_(None))
            connection.execute(update(guard_incidents).where(*is_open).values(values))


def _find(connection: Connection, name: str) -> Incident | None:
    row = connection.execute(_select(name)).one_or_none()
    return None if row is None else _incident(row)


def _select(name: str) -> Any:
    return select(guard_incidents).where(guard_incidents.c.incident == name)


def _row(incident: Incident) -> dict[str, Any]:
    return {
        "incident": incident.name,
        "job_id": incident.job_id,
        "attempt": incident.attempt,
        "onset": incident.onset,
        "last_good": incident.last_good,
        "opened": incident.opened,
        "divergence": incident.divergence,
    }


def _incident(row: Row[Any]) -> Incident:
    return Incident(
        name=row.incident,
        job_id=row.job_id,
        attempt=row.attempt,
        onset=row.onset,
        last_good=row.last_good,
        opened=row.opened,
        divergence=row.divergence,
        planned=row.planned,
        executed=row.executed,
        isolated=row.isolated,
        report=None if row.report is None else json.loads(row.report),
    )
