"""Isolation of a diverged fleet: who is stopped, what is marked and rolled back, and that nothing else is touched."""

import json
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.cycle.containment import checkpoint_asset
from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.isolation import Isolator
from ftpipeline.cycle.isolation_plan import plan_of
from ftpipeline.cycle.isolation_records import DIVERGENCE, ISOLATION, incident_id
from ftpipeline.cycle.watch import signer_of, watch
from ftpipeline.digest import Digest, of_bytes, parse
from ftpipeline.errors import LeaseLostError, QuarantinedError, UnknownNameError
from ftpipeline.guard.lineage import Position
from ftpipeline.guard.plan import Action
from ftpipeline.guard.trace import TraceVerdict
from ftpipeline.ledger.events import CloseReason, Kind
from ftpipeline.receipts import verify
from ftpipeline.steps.ports import Terminator
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.fleet_world import EndsRuns, World, six_jobs
from ftpipeline_tests.registry.world import NAME
from ftpipeline_tests.registry.world import World as RegistryWorld
from ftpipeline_tests.store.damage import object_path
from ftpipeline_tests.store.postgres_server import PostgresServer
from ftpipeline_tests.store.rows import lineage, put_tree

TAINTED, CLEAN = "ABCF", "DE"
FORMATS = Path(__file__).resolve().parents[2] / "docs" / "formats"


@pytest.fixture
def world(store: Store) -> World:
    return six_jobs(store)


def incident_of(world: World) -> Incident:
    [opened] = watch(world.store, world.ledger).opened
    return opened


def isolate(world: World, incident: Incident | None = None, terminator: Terminator | None = None) -> Incident:
    named = incident_of(world) if incident is None else incident
    ends = EndsRuns() if terminator is None else terminator
    return Isolator(world.store, world.ledger, signer_of(world.store), ends).isolate(named.name)


def report(incident: Incident) -> dict[str, Any]:
    assert incident.report is not None
    return dict(incident.report)


def actions(incident: Incident) -> dict[str, str]:
    return {action["job_id"]: action["action"] for action in report(incident)["actions"]}


def is_marked(store: Store, tree: Digest) -> bool:
    try:
        store.quarantine.check(tree)
    except QuarantinedError:
        return True
    return False


def test_every_job_of_the_cut_has_the_one_action_that_it_needs(world: World) -> None:
    done = isolate(world)
    assert actions(done) == {
        "A": Action.ROLLBACK,
        "B": Action.ROLLBACK,
        "C": Action.ROLLBACK,
        "D": Action.NONE,
        "E": Action.NONE,
        "F": Action.QUARANTINE,
    }
    assert report(done)["verdict"] == TraceVerdict.UNRECOVERABLE_CONTAMINATION
    back = {job["job_id"]: job["rollback_to"] for job in report(done)["jobs"]}
    assert back == {"A": [1, 140], "B": [1, 40], "C": [1, 60], "D": None, "E": None, "F": None}


def test_tainted_checkpoints_are_marked_and_clean_ones_are_not(world: World) -> None:
    isolate(world)
    trees = {(name, step): tree for name, job in world.jobs.items() for step, tree in job.trees.items()}
    marked = {place for place, tree in trees.items() if is_marked(world.store, tree)}
    assert marked == {("A", 145), ("B", 80), ("C", 90), ("F", 20)}


def test_tainted_jobs_are_stopped_and_write_nothing_any_more(world: World) -> None:
    ends = EndsRuns()
    isolate(world, terminator=ends)
    assert sorted(ends.asked) == [f"run of {name}" for name in TAINTED]
    for name in TAINTED:
        assert not world.ledger.job(name).is_open
        with pytest.raises(LeaseLostError):
            world.jobs[name].train(world.jobs[name].step + 1)


def test_a_run_that_does_not_end_writes_nothing_any_more_either(world: World) -> None:
    class EndsNothing(Terminator):
        def _terminate(self, run_ids: Collection[str]) -> frozenset[str]:
            return frozenset()

    isolate(world, terminator=EndsNothing())
    with pytest.raises(LeaseLostError):
        world.jobs["B"].save()


def test_clean_jobs_go_on_and_end_as_if_nothing_had_happened(world: World) -> None:
    before = {name: world.ledger.job(name) for name in CLEAN}
    isolate(world)
    assert {name: world.ledger.job(name) for name in CLEAN} == before
    for name in CLEAN:
        job = world.jobs[name]
        job.train(job.step + 50)
        job.close(job.save())
        world.ledger.verify(name)


def test_each_chain_says_what_became_of_the_job_and_still_verifies(world: World) -> None:
    done = isolate(world)
    for name in TAINTED:
        world.ledger.verify(name)
        [action] = world.ledger.events(name, kinds=[Kind.ISOLATION_ACTION])
        assert (action.payload["receipt"], action.payload["incident"]) == (done.divergence, done.name)
        [closed] = world.ledger.events(name, kinds=[Kind.JOB_CLOSED])
        assert closed.payload["reason"] == CloseReason.HALTED
    [detected] = world.ledger.events("A", kinds=[Kind.DIVERGENCE_DETECTED])
    assert (detected.payload["onset"], detected.payload["last_good"]) == (141, 140)
    assert world.ledger.events("B", kinds=[Kind.DIVERGENCE_DETECTED]) == []


def test_receipts_are_signed_before_and_after(world: World) -> None:
    done = isolate(world)
    public = signer_of(world.store).key.public

    def read(receipt: Digest | None) -> Any:
        assert receipt is not None
        return verify(world.store.blobs.read_bytes(receipt), public)

    divergence, planned, executed = read(done.divergence), read(done.planned), read(done.executed)
    assert divergence.predicate_type == DIVERGENCE
    assert (divergence.predicate["job_id"], divergence.predicate["onset"]) == ("A", 141)
    assert divergence.predicate["evidence"][0]["value"] == {"non_finite": "nan"}
    assert [each.predicate_type for each in (planned, executed)] == [ISOLATION, ISOLATION]
    assert [each.predicate["phase"] for each in (planned, executed)] == ["planned", "executed"]
    assert all(each.subjects[0].digest == done.divergence for each in (planned, executed))
    root = world.ledger.manifest(planned.predicate["cut"]["heads"])["root"]
    assert root == planned.predicate["cut"]["root"] == planned.subjects[1].digest


@pytest.mark.parametrize(
    ("name", "receipt"),
    [
        ("divergence_detection_receipt", "divergence"),
        ("isolation_action_receipt", "planned"),
        ("isolation_action_receipt", "executed"),
    ],
)
def test_the_published_schemas_describe_the_receipts(world: World, name: str, receipt: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((FORMATS / f"{name}.schema.json").read_text("utf-8"))
    world.jobs["E"].read(put_tree(world.store.trees, weights=b"rows"))
    envelope = world.store.blobs.read_bytes(getattr(isolate(world), receipt))
    predicate = dict(verify(envelope, signer_of(world.store).key.public).predicate)
    described = jsonschema.Draft202012Validator(schema)
    described.validate(predicate)
    assert not described.is_valid({**predicate, "incident": "feed"})
    assert not described.is_valid({**predicate, "more": 1})


def test_an_isolation_that_is_repeated_changes_nothing(world: World) -> None:
    done = isolate(world)
    heads, marks = world.ledger.jobs(), world.store.quarantine.marks()
    ends = EndsRuns()
    assert isolate(world, done, ends) == done
    assert (world.ledger.jobs(), world.store.quarantine.marks(), ends.asked) == (heads, marks, [])
    assert watch(world.store, world.ledger).opened == ()


def test_a_job_that_consumes_before_the_marks_are_written_is_found_too(world: World) -> None:
    """D reads what C saved after the incident was opened, and before it is isolated."""
    incident = incident_of(world)
    world.jobs["D"].consume(world.jobs["C"], 90)
    done = isolate(world, incident)
    assert actions(done)["D"] == Action.QUARANTINE
    assert sorted(report(done)["stopped"]) == sorted((*TAINTED, "D"))


def test_what_a_job_saves_while_it_is_stopped_is_marked(world: World) -> None:
    b = world.jobs["B"]

    class SavesAtTheEnd(EndsRuns):
        def _terminate(self, run_ids: Collection[str]) -> frozenset[str]:
            if not self.asked:
                b.train(85)
                b.save()
            return super()._terminate(run_ids)

    isolate(world, terminator=SavesAtTheEnd())
    assert is_marked(world.store, b.trees[85])


def test_a_marked_checkpoint_is_refused_to_whoever_wants_it(world: World) -> None:
    isolate(world)
    g = world.open("G")
    with pytest.raises(QuarantinedError):
        g.consume(world.jobs["B"], 80)
    tree = world.jobs["B"].trees[80]
    with pytest.raises(QuarantinedError):
        world.open("B", {"attempt": 1, "step": 80, "tree": tree})
    g.consume(world.jobs["A"], 140)


def test_a_retry_from_the_clean_checkpoint_is_a_new_attempt_and_no_incident(world: World) -> None:
    isolate(world)
    tree = world.jobs["B"].trees[40]
    retry = world.open("B", {"attempt": 1, "step": 40, "tree": tree})
    retry.train(200)
    seen = watch(world.store, world.ledger)
    assert (seen.opened, seen.waiting) == ((), ())
    retry.train(205, float("nan"))
    [again] = watch(world.store, world.ledger).opened
    assert (again.job_id, again.attempt) == ("B", 2)


def test_a_tainted_job_that_diverges_itself_is_no_second_incident_once_it_is_isolated(world: World) -> None:
    world.jobs["C"].train(95, float("nan"))
    seen = watch(world.store, world.ledger)
    assert [incident.job_id for incident in seen.waiting] == ["A", "C"]
    for incident in seen.waiting:
        isolate(world, incident)
    assert Incidents(world.store.database).waiting() == []
    world.ledger.verify("C")


def test_a_divergence_is_named_alike_by_whoever_finds_it(world: World) -> None:
    incident = incident_of(world)
    assert incident.name == incident_id("A", 1, 141)
    assert Incidents(world.store.database).open(incident) == incident
    assert len(Incidents(world.store.database).all()) == 1


def test_pointers_go_back_to_what_is_clean(world: World) -> None:
    old, new = put_tree(world.store.trees, weights=b"old"), put_tree(world.store.trees, weights=b"new")
    record(world.store, "train", "key of A", new)
    world.store.pointers.put("tiny/train", "2026-11-02", "earlier run", 0, old)
    world.store.pointers.put("tiny/train", "2026-11-02", "run of A", 0, new)
    done = isolate(world)
    pointer = world.store.pointers.latest("tiny/train", "2026-11-02")
    assert pointer is not None
    assert pointer.digest == old
    clean = world.store.pointers.latest(checkpoint_asset("A"), None)
    assert clean is not None
    assert clean.digest == world.jobs["A"].trees[140]
    assert {row["asset"] for row in report(done)["pointers"]} >= {"tiny/train", "checkpoint A"}


def record(store: Store, step: str, key: str, output: Digest, inputs: dict[str, Digest] | None = None) -> None:
    store.results.record(lineage(of_bytes(key.encode()), output, inputs, step=step))


def test_outputs_and_everything_made_from_them_are_marked(world: World) -> None:
    store = world.store
    adapter, export, other = (put_tree(store.trees, weights=name) for name in (b"adapter", b"export", b"other"))
    record(store, "train", "key of B", adapter)
    record(store, "export", "export of B", export, {"adapter": adapter})
    record(store, "export", "export of D", other, {"adapter": world.jobs["D"].trees[50]})
    isolate(world)
    assert [is_marked(store, tree) for tree in (adapter, export, other)] == [True, True, False]
    assert store.results.find(lineage(parse(adapter), adapter).key) is None


def registry_of(world: World) -> RegistryWorld:
    """Open a registry whose artifact `bad` was exported from what B trained."""
    registry = RegistryWorld(world.store.database, world.store.home.store_root)
    adapter = put_tree(world.store.trees, weights=b"adapter")
    record(world.store, "train", "key of B", adapter)
    record(world.store, "export", "export of B", registry.artifact("bad"), {"adapter": adapter})
    return registry


def test_production_goes_back_when_a_tainted_artifact_is_there(world: World) -> None:
    registry = registry_of(world)
    registry.release("good")
    registry.release("bad")
    done = isolate(world)
    assert registry.holds("production") == registry.artifact("good")
    move = {"name": NAME, "stage": "production", "digest": registry.artifact("good"), "generation": 3}
    assert report(done)["stages"] == [move]
    assert report(done)["stuck"] == []


def test_a_tainted_candidate_is_rejected_and_production_stands(world: World) -> None:
    registry = registry_of(world)
    registry.release("good")
    registry.register("bad")
    done = isolate(world)
    assert (registry.holds("candidate"), registry.holds("production")) == (None, registry.artifact("good"))
    assert [move["stage"] for move in report(done)["stages"]] == ["rejected"]


def test_a_production_with_nothing_clean_before_it_is_reported_and_not_resolved(world: World) -> None:
    registry = registry_of(world)
    registry.release("bad")
    done = isolate(world)
    [stuck] = report(done)["stuck"]
    assert stuck["digest"] == registry.artifact("bad") == registry.holds("production")
    with pytest.raises(QuarantinedError):
        registry.registry.resolve(NAME, "production")


def test_data_that_a_tainted_job_made_taints_who_reads_it(world: World) -> None:
    a = world.jobs["A"]
    labels = put_tree(world.store.trees, weights=b"labels by A")
    a.close(labels)
    g = world.open("G")
    g.read(labels, "data", maker="A")
    g.train(10)
    g.save()
    incident = incident_of(world)
    planned = plan_of(world.store, world.ledger, incident.traced)
    assert {action.job_id: action.action for action in planned.actions}["G"] is Action.QUARANTINE
    done = isolate(world, incident)
    assert is_marked(world.store, labels)
    assert actions(done)["G"] == Action.QUARANTINE


def test_the_maker_of_an_artifact_is_found_by_lineage_where_nobody_named_it(world: World) -> None:
    adapter, labels = put_tree(world.store.trees, weights=b"adapter"), put_tree(world.store.trees, weights=b"labels")
    world.jobs["A"].close(adapter)
    record(world.store, "label", "labels", labels, {"model": adapter})
    g = world.open("G")
    g.read(labels)
    incident = incident_of(world)
    planned = plan_of(world.store, world.ledger, incident.traced)
    assert Action.QUARANTINE is {action.job_id: action.action for action in planned.actions}["G"]


def test_an_input_that_no_job_made_is_a_shared_cause_and_no_taint(world: World) -> None:
    shared = put_tree(world.store.trees, weights=b"rows")
    for name in ("A", "D"):
        world.jobs[name].read(shared)
    done = isolate(world)
    assert actions(done)["D"] == Action.NONE
    assert report(done)["shared_causes"] == [{"digest": shared, "jobs": ["A", "D"]}]


def test_a_broken_chain_halts_whoever_trains_and_marks_nothing_of_them(world: World) -> None:
    incident = incident_of(world)
    break_chain(world, "E")
    done = isolate(world, incident)
    assert report(done)["verdict"] == TraceVerdict.HALT
    assert actions(done)["D"] == actions(done)["E"] == Action.HALT
    assert not is_marked(world.store, world.jobs["D"].trees[50])
    assert not world.ledger.job("D").is_open
    with pytest.raises(LeaseLostError):
        world.jobs["E"].save()


def break_chain(world: World, job_id: str) -> None:
    """Change an event past the triggers, as somebody with the database file could."""
    with world.store.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_events_no_update")
        connection.exec_driver_sql("UPDATE ledger_events SET step = 7 WHERE job_id = ? AND seq = 1", (job_id,))


def test_a_checkpoint_that_is_gone_is_nothing_to_go_back_to(world: World) -> None:
    object_path(world.store, world.jobs["A"].trees[140]).unlink()
    done = isolate(world)
    back = {job["job_id"]: job["rollback_to"] for job in report(done)["jobs"]}
    assert back["A"] == [1, 100]


def test_a_mark_of_another_incident_is_nothing_to_go_back_to(world: World) -> None:
    world.store.quarantine.mark(world.jobs["A"].trees[140], parse(f"sha256:{'1' * 64}"), "another incident")
    planned = plan_of(world.store, world.ledger, incident_of(world).traced)
    [a] = [action for action in planned.actions if action.job_id == "A"]
    assert a.rollback_to == Position(1, 100)


def test_an_unknown_incident_is_refused(world: World) -> None:
    with pytest.raises(UnknownNameError, match="no incident"):
        Isolator(world.store, world.ledger, signer_of(world.store), EndsRuns()).isolate("feed")


def test_two_isolations_of_one_incident_do_it_once(world: World) -> None:
    incident = incident_of(world)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: isolate(world, incident), range(2))
    assert first == second
    for name in TAINTED:
        assert len(world.ledger.events(name, kinds=[Kind.ISOLATION_ACTION])) == 1


@pytest.mark.postgres
def test_an_incident_is_found_and_isolated_on_postgresql(
    home: Home, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.empty_database() as url:
        monkeypatch.setenv("FTPIPELINE_DATABASE", url)
        with closing(home.open()) as store:
            world = six_jobs(store)
            done = isolate(world)
            assert actions(done) == dict.fromkeys("ABC", "rollback") | dict.fromkeys("DE", "none") | {"F": "quarantine"}
            assert isolate(world, done) == done
            assert watch(store, world.ledger).waiting == ()


def test_an_orchestrator_that_is_down_keeps_no_tainted_job_writing(world: World) -> None:
    class Down(Terminator):
        def _terminate(self, run_ids: Collection[str]) -> frozenset[str]:
            raise ConnectionRefusedError("nobody answers")

    done = isolate(world, terminator=Down())
    assert done.isolated is not None
    with pytest.raises(LeaseLostError):
        world.jobs["B"].save()
