"""Six jobs train at once in a running deployment; one diverges, and Dagster's own daemon has it isolated."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.scan_interval import INTERVAL_VARIABLE
from ftpipeline.cycle.training_points import Memory, look
from ftpipeline.digest import Digest
from ftpipeline.errors import QuarantinedError
from ftpipeline.guard.plan import Action
from ftpipeline.guard.verdicts import Stage
from ftpipeline.ledger.events import CloseReason, Use
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.orchestration.divergence import SENSOR
from ftpipeline.orchestration.isolation_runs import INCIDENT_TAG
from ftpipeline.orchestration.quarantine import CHECK, QUARANTINE
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cli.command import ftpipeline
from ftpipeline_tests.cycle.fleet_world import opened
from ftpipeline_tests.cycle.training_world import MODULE
from ftpipeline_tests.orchestration.servers import WebServer, dagster_dev, deployment, needs_proc, wait_for
from ftpipeline_tests.scenarios.fleet import (
    EARLY,
    LATE,
    MERGED_AT,
    NAMES,
    Fleet,
    build_fleet,
    found_of,
    has_consumed,
    has_saved,
    held,
    job_of,
    tree_of,
)
from ftpipeline_tests.tiny_pipeline import WEEK

pytestmark = [pytest.mark.slow, needs_proc, pytest.mark.timeout(900)]

_PATIENCE, _SOON = 300.0, 0.02


@dataclass(frozen=True)
class Outcome:
    """A deployment after its incident.

    Attributes:
        incident: isolated.
        store: of its home.
        server: of the UI, still running.
        instance: Dagster's.
        runs: by pipeline, the run that trained it.
        alone: by pipeline, what d and e are when nothing diverges beside them.
    """

    incident: Incident
    store: Store
    server: WebServer
    instance: dg.DagsterInstance
    runs: dict[str, str]
    alone: dict[str, Digest]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """The six trained at once, until the daemon has had the incident isolated and the clean ones have ended."""
    folder = tmp_path_factory.mktemp("divergence")
    files = build_fleet(folder / "pipelines")
    with ExitStack() as stack:
        place = deployment(folder, *files)
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        patched.setenv("DAGSTER_HOME", str(place.home.dagster_home))
        patched.setenv(INTERVAL_VARIABLE, "1")
        alone = trained_alone(folder)
        store = stack.enter_context(closing(place.home.open()))
        server = stack.enter_context(dagster_dev(place))
        instance = stack.enter_context(dg.DagsterInstance.get())
        began = time.monotonic()
        runs = start(server, store)
        consumed = time.monotonic()
        incident = wait_for(lambda: isolated(store), _PATIENCE, "isolation")
        done = time.monotonic()
        wait_for(lambda: ended(instance) or None, _PATIENCE, "ends of all runs")
        took = {
            "until all had consumed": consumed - began,
            "until it was isolated": done - consumed,
            "until the others ended": time.monotonic() - done,
        }
        print(", ".join(f"{seconds:.0f} s {what}" for what, seconds in took.items()))
        yield Outcome(incident, store, server, instance, runs, alone)


def trained_alone(folder: Path) -> dict[str, Digest]:
    """Train d, and e with nothing of a but the checkpoint that it reads; each in a home where nothing diverges."""
    with closing(Home(folder / "alone").open()) as store:
        fleet = Fleet(folder / "pipelines", store)
        fleet.start("d")
        fleet.start("a")
        wait_for(lambda: has_saved(store, "a", EARLY) or None, _PATIENCE, f"checkpoint {EARLY} of a", _SOON)
        head = job_of(store, "a")
        assert head is not None
        ledger_of(store).seize(head.job_id, "whoever needs no more of it", 1.0)
        fleet.start("e")
        fleet.wait("a", "d", "e")
        return {name: fleet.outputs[name]["train"] for name in "de"}


def start(server: WebServer, store: Store) -> dict[str, str]:
    """Launch all six as the UI does, a first, and return once each that consumes has consumed."""
    runs = {"a": server.launch("a_job", WEEK)}
    wait_for(lambda: has_saved(store, "a", EARLY) or None, _PATIENCE, f"checkpoint {EARLY} of a", _SOON)
    [worker] = [pid for pid, command in server.session.processes().items() if MODULE in command]
    with held(worker):
        runs |= {name: server.launch(f"{name}_job", WEEK) for name in "bdef"}
        wait_for(lambda: job_of(store, "b"), _PATIENCE, "job of b")
        runs["c"] = server.launch("c_job", WEEK)
        wait_for(lambda: all(job_of(store, name) for name in NAMES) or None, _PATIENCE, "six jobs at once")
    wait_for(lambda: has_saved(store, "a", LATE) or None, _PATIENCE, f"checkpoint {LATE} of a", _SOON)
    with held(worker):
        wait_for(lambda: all(has_consumed(store, name) for name in "bcef") or None, _PATIENCE, "consumptions")
    return runs


def isolated(store: Store) -> Incident | None:
    return next((incident for incident in Incidents(store.database).all() if incident.isolated), None)


def ended(instance: dg.DagsterInstance) -> bool:
    return all(run.is_finished for run in instance.get_runs())


def test_the_first_tick_after_the_confirming_event_requests_the_isolation(outcome: Outcome) -> None:
    committed = after_confirmation(outcome)
    [state] = [state for state in outcome.instance.all_instigator_state() if state.name == SENSOR]
    ticks = outcome.instance.get_ticks(state.instigator_origin_id, state.selector_id)
    requests = [tick for tick in ticks if tick.run_ids]
    first = min(tick.timestamp for tick in ticks if tick.timestamp > committed)
    [run] = outcome.instance.get_runs(dg.RunsFilter(tags={INCIDENT_TAG: outcome.incident.name}))
    assert [list(tick.run_ids) for tick in requests] == [[run.run_id]]
    assert requests[0].timestamp <= first


def after_confirmation(outcome: Outcome) -> float:
    """Return a time at which the events that confirm the divergence were committed: the next one was made then."""
    events, memory = iter(ledger_of(outcome.store).events(outcome.incident.job_id)), Memory()
    for event in events:
        memory, found = look(memory, [event])
        if any(detection.stage is Stage.CONFIRMED for detection in found):
            return datetime.fromisoformat(next(events).time).timestamp()
    raise AssertionError("no event confirms the divergence")


def test_the_four_tainted_runs_are_halted_and_the_clean_two_end_well(outcome: Outcome) -> None:
    statuses = {name: outcome.server.status(run) for name, run in outcome.runs.items()}
    assert statuses == dict.fromkeys("abcf", "CANCELED") | dict.fromkeys("de", "SUCCESS")
    assert set((outcome.incident.report or {})["stopped"]) >= {job_id(outcome, name) for name in "abcf"}
    assert {head.attempt for head in ledger_of(outcome.store).jobs()} == {1}  # what was told to end is not tried again


def test_each_goes_back_to_its_last_clean_checkpoint_or_has_none(outcome: Outcome) -> None:
    found = found_of(outcome.store, outcome.incident)
    assert {name: job.action for name, job in found.items()} == (
        dict.fromkeys("abc", Action.ROLLBACK) | dict.fromkeys("de", Action.NONE) | {"f": Action.QUARANTINE}
    )
    assert [name for name, job in found.items() if job.unrecoverable] == ["f"]
    assert [found[name].tainted_from for name in "bc"] == [(1, MERGED_AT)] * 2
    assert [found[name].rollback_to for name in "bc"] == [(1, EARLY)] * 2
    assert [found[name].witness for name in "bcf"] == [["a", "b"], ["a", "b", "c"], ["a", "f"]]
    good = found["a"].rollback_to
    assert good is not None
    assert EARLY <= good[1] <= (outcome.incident.last_good or 0) < outcome.incident.onset <= LATE


def test_the_clean_jobs_made_what_they_make_alone(outcome: Outcome) -> None:
    closed = {name: ledger_of(outcome.store).events(job_id(outcome, name))[-1] for name in "de"}
    assert {name: event.payload["output"] for name, event in closed.items()} == outcome.alone


def test_quarantine_is_shown_for_each_tainted_job(outcome: Outcome) -> None:
    keys = {f"{outcome.incident.name}.{job_id(outcome, name)}" for name in "abcf"}
    assert set(outcome.instance.get_materialized_partitions(QUARANTINE)) == keys
    for name in "abcf":
        check = dg.AssetCheckKey(dg.AssetKey([name, "train"]), CHECK)
        [last] = outcome.instance.event_log_storage.get_asset_check_execution_history(check, limit=1)
        assert last.status.value == "FAILED"


def test_the_ledger_bundle_proves_the_incident(outcome: Outcome, tmp_path: Path) -> None:
    bundle = tmp_path / "incident.bundle"
    exported = ftpipeline("ledger", "export", "-o", bundle, "--home", outcome.store.home.root, "--json")
    assert exported.code == 0, exported.stderr
    proven = ftpipeline("verify", bundle, "--key", exported.document["key"], "--json")
    assert proven.code == 0, proven.stderr
    assert proven.document["root"] == exported.document["root"]


def test_a_tainted_checkpoint_is_refused_to_a_resume_and_to_other_jobs(outcome: Outcome) -> None:
    ledger, tainted = ledger_of(outcome.store), job_id(outcome, "b")
    late = ledger.checkpoints(tainted)[-1]
    resumed = {"attempt": late.attempt, "step": late.step, "tree": late.payload["tree"]}
    head = ledger.job(tainted)
    with pytest.raises(QuarantinedError):
        ledger.open_job(tainted, {**head.opened, "resumed_from": resumed}, "a person", 10.0)
    another = ledger.open_job("another", opened("another"), "a person", 10.0)
    with pytest.raises(QuarantinedError):
        another.consume(tainted, late.step, Use.MERGE, 0)
    another.close(CloseReason.FAILED, error="refused")


def test_no_stage_of_a_tainted_week_can_be_run_by_hand(outcome: Outcome) -> None:
    """Last of all, because it adds runs."""
    before = tree_of(outcome.store, job_id(outcome, "b"), EARLY)
    by_hand = {
        "export": outcome.server.launch("b_job", WEEK, ["b", "export"]),
        "train": outcome.server.launch("b_job", WEEK, ["b", "train"]),
    }
    wait_for(lambda: ended(outcome.instance) or None, _PATIENCE, "ends of the runs")
    assert {outcome.server.status(run) for run in by_hand.values()} == {"FAILURE"}
    said = [dg.serialize_value(entry) for entry in outcome.instance.all_logs(by_hand["train"])]
    assert any("is quarantined" in entry for entry in said)
    assert tree_of(outcome.store, job_id(outcome, "b"), EARLY) == before


def job_id(outcome: Outcome, name: str) -> str:
    head = job_of(outcome.store, name)
    assert head is not None
    return head.job_id
