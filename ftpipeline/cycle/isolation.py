"""Isolates an incident: every tainted job is stopped, marked and rolled back, and nothing else is touched.

Laws: an isolation that dies at any point and is run again does the rest, and nothing twice; one that is done changes
nothing any more; when it is done, no route uses what the incident tainted. The order makes it so: marks come first, so
that nobody consumes what is marked; then jobs are stopped; then the fleet is traced again, because a job may have
consumed in between, until a trace finds nothing new.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ftpipeline.cycle import containment
from ftpipeline.cycle.fleet import Fleet
from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.isolation_plan import Plan, plan_of
from ftpipeline.cycle.isolation_records import EXECUTED, PLANNED, Signer, isolation_statement
from ftpipeline.digest import Digest
from ftpipeline.engine.flight import DEFAULT_PACE, Pace, kept_alive
from ftpipeline.engine.holder import is_gone, this_process
from ftpipeline.errors import LeaseLostError, WorkerError
from ftpipeline.guard.lineage import Chain
from ftpipeline.guard.plan import JobAction
from ftpipeline.guard.verdicts import Stage
from ftpipeline.ledger.events import CloseReason, Draft, Event, Kind
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.ledger.rows import JobHead
from ftpipeline.steps.ports import Terminator
from ftpipeline.store.opened import Store

_TURN = "isolation"  # isolations wait for each other: two of them may share jobs

Told = Callable[[str], None]
"""Hears, line by line, what an isolation does."""


class Isolator:
    """Isolates incidents of one home."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        signer: Signer,
        terminator: Terminator,
        tell: Told = lambda line: None,
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        """Prepare isolations.

        Args:
            store: what is marked and rolled back.
            ledger: tells who consumed what, and takes the events.
            signer: signs the receipts.
            terminator: ends the runs of tainted jobs.
            tell: told of every action.
            pace: how long to wait for another isolation.
        """
        self._store = store
        self._ledger = ledger
        self._signer = signer
        self._terminator = terminator
        self._tell = tell
        self._pace = pace
        self._incidents = Incidents(store.database)
        self._me = this_process()

    def isolate(self, name: str) -> Incident:
        """Isolate an incident, or go on with an isolation that was cut short.

        Returns:
            The incident with its report.

        Raises:
            UnknownNameError: there is no such incident.
            LeaseLostError: another isolation did not end within the patience.
            LedgerError: the ledger cannot be read or written; run it again once it can.
        """
        with self._turn():
            incident = self._incidents.get(name)
            if incident.isolated is None:
                self._isolate(incident)
            return self._incidents.get(name)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        leases, deadline = self._store.leases, time.monotonic() + self._pace.patience
        while (lease := leases.acquire(_TURN, self._me, self._pace.ttl)) is None:
            holder = leases.held().get(_TURN)
            if holder is not None and is_gone(holder):
                leases.disown(_TURN, holder)
            elif time.monotonic() >= deadline:
                raise LeaseLostError(f"another isolation is at work in {holder}; wait for its end, and isolate again")
            else:
                time.sleep(self._pace.poll)
        with kept_alive(leases, lease):
            yield

    def _isolate(self, incident: Incident) -> None:
        planned = self._plan(incident)
        self._incidents.plan(incident.name, self._sign(incident, PLANNED, planned, {}))
        final, stopped = self._contain(incident, planned)
        for action in final.to_do:
            self._settle(incident, final.fleet, action)
        containment.move_pointers(self._store, incident, final.fleet, final.actions)
        stuck = containment.move_stages(self._store, incident)
        done = {"stopped": stopped, **self._done(incident, final), "stuck": stuck}
        self._incidents.close(incident.name, self._sign(incident, EXECUTED, final, done), {**final.findings, **done})

    def _plan(self, incident: Incident) -> Plan:
        return plan_of(self._store, self._ledger, incident.traced, incident.divergence)

    def _contain(self, incident: Incident, current: Plan) -> tuple[Plan, list[str]]:
        """Mark and stop what the plan says, plan again, and go on until nothing new is found.

        Returns:
            The last plan, and the jobs that were stopped.
        """
        contained: dict[str, JobAction] = {}
        stopped: list[str] = []
        while new := [action for action in current.to_do if contained.get(action.job_id) != _lasting(action)]:
            for action in new:
                found = containment.unusable(self._store, current.fleet, action)
                containment.mark(self._store, incident, action, found.items())
                contained[action.job_id] = _lasting(action)
                self._tell(f"{action.job_id}: {action.action}, {len(found)} marks; {action.reason}")
            stopped += self._stop(current.fleet, [action.job_id for action in new if action.stop])
            current = self._plan(incident)
        return current, sorted(set(stopped))

    def _stop(self, fleet: Fleet, job_ids: Sequence[str]) -> list[str]:
        """End the runs of jobs in order, then take the jobs, so that whoever did not end writes nothing any more."""
        runs = {job_id: str(fleet.heads[job_id].opened["run_id"]) for job_id in job_ids}
        try:
            ended = self._terminator.terminate(sorted(set(runs.values())))
        except WorkerError as error:  # the orchestrator is down; the fence holds all the same
            self._tell(str(error))
            ended = frozenset()
        for job_id in job_ids:
            self._ledger.seize(job_id, self._me, self._pace.ttl)
            how = "ended" if runs[job_id] in ended else "did not end, and may write no more"
            self._tell(f"{job_id}: run {runs[job_id]} {how}")
        return list(job_ids)

    def _settle(self, incident: Incident, fleet: Fleet, action: JobAction) -> None:
        """Write into a job's chain what became of it, once, and close it; an artifact has no chain."""
        if action.job_id not in fleet.heads:
            return
        if fleet.chain(action.job_id) is not Chain.VERIFIED:
            self._tell(f"{action.job_id}: its chain cannot be trusted, so nothing is written into it")
            return
        writer = self._ledger.seize(action.job_id, self._me, self._pace.ttl)
        try:
            head = writer.head
            written = {event.kind for event in self._written(incident, action.job_id)}
            drafts = _drafts(incident, fleet, action, head)
            writer.append([draft for draft in drafts if draft.kind not in written])
            if head.is_open:
                writer.close(CloseReason.HALTED, error=f"incident {incident.name}: {action.reason}")
        finally:
            writer.release()

    def _written(self, incident: Incident, job_id: str) -> list[Event]:
        kinds = [Kind.DIVERGENCE_DETECTED, Kind.ISOLATION_ACTION]
        events = self._ledger.events(job_id, kinds=kinds)
        return [event for event in events if event.payload["receipt"] == incident.divergence]

    def _done(self, incident: Incident, final: Plan) -> dict[str, Any]:
        """Return what was done, as it is recorded, also by an isolation that was cut short."""
        acted = {action.job_id for action in final.to_do}
        heads = {job_id: head for job_id, head in final.fleet.heads.items() if job_id in acted}
        sound = [job_id for job_id in heads if final.fleet.chain(job_id) is Chain.VERIFIED]
        events = [event for job_id in sound for event in self._written(incident, job_id)]
        return {
            "affected": {job_id: _names(head) for job_id, head in heads.items()},
            "marks": [
                {"job_id": action.job_id, "digest": digest, "what": what}
                for action in final.actions
                for digest, what in containment.unusable(self._store, final.fleet, action).items()
            ],
            "events": [{"job_id": event.job_id, "kind": str(event.kind), "digest": event.digest} for event in events],
            "pointers": containment.moved_pointers(self._store, incident),
            "stages": containment.moved_stages(self._store, incident),
        }

    def _sign(self, incident: Incident, phase: str, planned: Plan, done: Mapping[str, Any]) -> Digest:
        findings = {**planned.findings, **done}
        return self._signer.put(
            isolation_statement(incident.name, incident.divergence, phase, planned.fleet.cut, findings)
        )


def is_isolating(store: Store) -> bool:
    """Tell whether a living process isolates an incident now."""
    holder = store.leases.held().get(_TURN)
    return holder is not None and not is_gone(holder)


def _names(head: JobHead) -> dict[str, Any]:
    """Return what a job is known by outside of the ledger."""
    return {name: head.opened[name] for name in ("run_id", "pipeline", "week")}


def _lasting(action: JobAction) -> JobAction:
    """Return an action without what its own execution changes."""
    return replace(action, stop=False)


def _drafts(incident: Incident, fleet: Fleet, action: JobAction, head: JobHead) -> list[Draft]:
    since, back = action.tainted_from, action.rollback_to
    payload = {
        "receipt": incident.divergence,
        "incident": incident.name,
        "action": str(action.action),
        "reason": action.reason,
        "tainted_from": None if since is None else list(since),
        "rollback_to": None if back is None else list(back),
        "rollback_tree": fleet.tree(action.job_id, back),
    }
    drafts = [Draft(Kind.ISOLATION_ACTION, head.step, head.epoch, payload)]
    if action.job_id == incident.job_id:
        found = {"stage": str(Stage.CONFIRMED), "onset": incident.onset, "last_good": incident.last_good}
        found |= {"receipt": incident.divergence}
        drafts.insert(0, Draft(Kind.DIVERGENCE_DETECTED, head.step, head.epoch, found))
    return drafts
