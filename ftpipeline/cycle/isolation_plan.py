"""What is to be done about a divergence, as the fleet stands: traced through the ledger, and nothing is changed."""

from dataclasses import dataclass
from typing import Any

from ftpipeline.cycle.fleet import Fleet, fleet_of
from ftpipeline.digest import Digest
from ftpipeline.guard.lineage import Incident as Divergence
from ftpipeline.guard.plan import Action, JobAction, plan
from ftpipeline.guard.trace import Trace, trace
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.store.opened import Store

FINDINGS = ("verdict", "jobs", "actions", "shared_causes", "unlisted")
"""What a plan and the report of an isolation both hold."""


@dataclass(frozen=True)
class Plan:
    """What a trace of an incident amounts to.

    Attributes:
        fleet: what was traced.
        found: a finding for every job.
        actions: an action for every job.
    """

    fleet: Fleet
    found: Trace
    actions: tuple[JobAction, ...]

    @property
    def to_do(self) -> list[JobAction]:
        """The actions that are more than none."""
        return [action for action in self.actions if action.action is not Action.NONE]

    @property
    def findings(self) -> dict[str, Any]:
        """The plan as strict JSON."""
        found = {**self.found.to_json(), "actions": [action.to_json() for action in self.actions]}
        return {name: found[name] for name in FINDINGS}


def plan_of(store: Store, ledger: Ledger, divergence: Divergence, marked_by: Digest | None = None) -> Plan:
    """Trace a divergence through the fleet as it stands, and plan; nothing is changed.

    Args:
        store: tells which checkpoints are retained.
        ledger: tells who consumed what.
        divergence: what is traced.
        marked_by: receipt of the incident, whose own marks change no plan; None where there is none.

    Raises:
        UnknownNameError: the diverged job is not in the ledger.
        LedgerError: the ledger cannot be read.
    """
    fleet = fleet_of(store, ledger, marked_by)
    found = trace([divergence], fleet.jobs, fleet.edges)
    return Plan(fleet, found, plan(found, fleet.jobs))
