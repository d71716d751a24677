from contextlib import closing

import pytest

from ftpipeline.digest import of_json
from ftpipeline.errors import (
    ChainError,
    InputError,
    LeaseLostError,
    LedgerError,
    QuarantinedError,
    UnknownNameError,
)
from ftpipeline.ledger.events import CloseReason, Draft, Kind, Use, number
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.ledger.quarantined import attempt_digest
from ftpipeline.store.database import Database, one_writer
from ftpipeline.store.leases import Leases
from ftpipeline.store.tables import ledger_events
from ftpipeline_tests.ledger.world import TTL, World, kinds, metrics, opened, saved
from ftpipeline_tests.store.rows import digest


def test_what_is_written_reads_back_equal_and_the_chain_verifies(world: World) -> None:
    writer = world.open("a")
    written = writer.append([metrics(1, 2), Draft(Kind.EVALUATION, 2, 0.02, {"val_loss": number(float("nan"))})])
    written += [world.save(writer, 10), writer.close(CloseReason.COMPLETED, digest("adapter"))]
    events = world.ledger.events("a")
    assert events[1:] == written
    assert kinds(events) == ["job_opened", "metrics", "evaluation", "checkpoint_saved", "job_closed"]
    assert [event.seq for event in events] == [0, 1, 2, 3, 4]
    assert [event.prev for event in events] == [None, *(event.digest for event in events[:-1])]
    assert [event.digest for event in events] == [of_json(event.document()) for event in events]
    assert world.another().verify("a").digest == events[-1].digest


def test_the_head_is_what_the_newest_event_says(world: World) -> None:
    writer = world.open("a", checkpoint_steps=5)
    event = writer.append([metrics(1, 2, 3)])[0]
    world.open("b")
    head, other = world.ledger.jobs()
    assert (head.job_id, head.attempt, head.seq, head.digest) == ("a", 1, 1, event.digest)
    assert (head.step, head.epoch, head.is_open) == (3, 0.03, True)
    assert head.opened == opened(checkpoint_steps=5, holder="holder of a")
    writer.close(CloseReason.FAILED, error="loss is NaN")
    assert world.ledger.jobs(open_only=True) == [other]
    assert [head.is_open for head in world.ledger.jobs()] == [False, True]


def test_events_are_given_from_a_place_on_and_by_kind(world: World) -> None:
    writer = world.open("a")
    writer.append([metrics(step) for step in range(1, 6)])
    world.save(writer, 5)
    assert [event.step for event in world.ledger.events("a", after_seq=2, limit=2)] == [3, 4]
    assert kinds(world.ledger.events("a", kinds=[Kind.CHECKPOINT_SAVED])) == ["checkpoint_saved"]
    assert len(world.ledger.events("a", kinds=[Kind.METRICS, Kind.JOB_OPENED])) == 6
    assert [event.step for event in world.ledger.checkpoints("a")] == [5]
    assert world.ledger.events("no such job") == []


def test_a_living_writer_keeps_others_out_and_its_end_lets_the_next_attempt_in(world: World) -> None:
    first = world.open("a")
    for ledger in (world.ledger, world.another()):
        with pytest.raises(LeaseLostError, match="trained by another process"):
            ledger.open_job("a", opened(), "another", TTL)
    first.close(CloseReason.INTERRUPTED)
    assert world.open("a").attempt == 2
    assert kinds(world.ledger.events("a")) == ["job_opened", "job_closed", "job_opened"]


def test_a_seized_job_refuses_what_its_holder_writes(world: World) -> None:
    writer = world.open("a")
    writer.append([metrics(1)])
    guard = world.another().seize("a", "guard", TTL)
    for write in (
        lambda: writer.append([metrics(2)]),
        lambda: writer.close(CloseReason.COMPLETED),
        lambda: writer.renew(),
    ):
        with pytest.raises(LeaseLostError, match="guard"):
            write()
    action = Draft(Kind.ISOLATION_ACTION, 1, 0.01, {"receipt": digest("receipt"), "action": "halt"})
    assert guard.append([action])[0].attempt == 1
    guard.close(CloseReason.HALTED)
    assert kinds(world.ledger.events("a")) == ["job_opened", "metrics", "isolation_action", "job_closed"]
    world.ledger.verify("a")


def test_nothing_is_seized_of_a_job_that_never_opened(world: World) -> None:
    with pytest.raises(UnknownNameError):
        world.ledger.seize("a", "guard", TTL)
    assert world.leases.held() == {}


def test_consuming_writes_the_event_that_names_the_producers(world: World) -> None:
    a, b = world.open("a"), world.open("b")
    event = world.save(a, 10)
    consumed = b.consume("a", 10, Use.MERGE, at_step=7)
    assert consumed.tree == event.payload["tree"]
    assert consumed.event == world.ledger.events("b")[-1]
    assert consumed.event.payload == {
        "producer": "a",
        "producer_attempt": 1,
        "producer_step": 10,
        "producer_event": event.digest,
        "tree": event.payload["tree"],
        "use": "merge",
        "at_step": 7,
    }
    assert world.ledger.consumptions() == world.ledger.consumptions(["b"]) == [consumed.event]
    assert world.ledger.consumptions(["a"]) == []


def test_the_newest_attempt_is_consumed_unless_another_is_named(world: World) -> None:
    a = world.open("a")
    first = world.save(a, 10)
    a.close(CloseReason.INTERRUPTED)
    second = world.save(world.open("a"), 10)
    b = world.open("b")
    assert b.consume("a", 10, Use.TEACHER, 0).event.payload["producer_event"] == second.digest
    assert b.consume("a", 10, Use.TEACHER, 0, attempt=1).event.payload["producer_event"] == first.digest


def test_what_was_never_saved_is_not_consumed(world: World) -> None:
    world.save(world.open("a"), 10)
    b = world.open("b")
    for producer, step, attempt in (("a", 11, None), ("a", 10, 2), ("c", 10, None)):
        with pytest.raises(UnknownNameError):
            b.consume(producer, step, Use.MERGE, 0, attempt)
    assert kinds(world.ledger.events("b")) == ["job_opened"]


def test_a_checkpoint_whose_bytes_are_gone_is_not_consumed(world: World) -> None:
    world.open("a").append([saved(10, digest("never stored"))])
    b = world.open("b")
    with pytest.raises(UnknownNameError, match="not kept any more"):
        b.consume("a", 10, Use.MERGE, 0)
    assert kinds(world.ledger.events("b")) == ["job_opened"]


@pytest.mark.parametrize("by", ["tree", "attempt"])
def test_what_is_under_quarantine_is_not_consumed_and_not_resumed_from(world: World, by: str) -> None:
    a = world.open("a")
    tree = world.save(a, 10).payload["tree"]
    a.close(CloseReason.HALTED)
    b = world.open("b")
    world.quarantine.mark(tree if by == "tree" else attempt_digest("a", 1), digest("receipt"), "diverged")
    with pytest.raises(QuarantinedError, match="diverged"):
        b.consume("a", 10, Use.WARM_START, 0)
    with pytest.raises(QuarantinedError, match="diverged"):
        world.open("a", resumed_from={"attempt": 1, "step": 10, "tree": tree})
    assert len(world.ledger.events("b")) == 1
    assert world.open("a").attempt == 2


def test_a_quarantined_artifact_is_not_consumed(world: World) -> None:
    writer = world.open("a")
    world.quarantine.mark(digest("labels"), digest("receipt"), "made by a diverged model")
    said = {"name": "labels", "tree": digest("labels"), "maker": None, "kind": "data"}
    with pytest.raises(QuarantinedError):
        writer.append([metrics(1), Draft(Kind.ARTIFACT_CONSUMED, 0, 0, said)])
    assert len(world.ledger.events("a")) == 1
    writer.append([Draft(Kind.ARTIFACT_CONSUMED, 0, 0, {**said, "tree": digest("other")})])
    assert kinds(world.ledger.consumptions()) == ["artifact_consumed"]


def test_an_attempt_that_is_barred_does_not_open(world: World) -> None:
    world.open("a").close(CloseReason.HALTED)
    world.quarantine.mark(attempt_digest("a", 2), digest("receipt"), "unrecoverable")
    with pytest.raises(QuarantinedError, match="unrecoverable"):
        world.open("a")
    assert world.leases.held() == {}
    assert len(world.ledger.events("a")) == 2


def test_an_attempt_resumes_at_the_step_of_its_checkpoint_and_from_no_other(world: World) -> None:
    a = world.open("a")
    event = world.save(a, 10)
    a.close(CloseReason.INTERRUPTED)
    for wrong in ({"step": 20}, {"attempt": 2}, {"tree": digest("other")}):
        with pytest.raises(UnknownNameError):
            world.open("a", resumed_from={"attempt": 1, "step": 10, "tree": event.payload["tree"], **wrong})
    world.open("a", resumed_from={"attempt": 1, "step": 10, "tree": event.payload["tree"]})
    head = world.ledger.job("a")
    assert (head.attempt, head.step, head.epoch) == (2, 10, 0.1)


def test_the_job_that_made_a_tree_is_known(world: World) -> None:
    writer = world.open("a")
    checkpoint = world.save(writer, 10).payload["tree"]
    writer.close(CloseReason.COMPLETED, digest("adapter"))
    assert world.ledger.maker(digest("adapter")) == world.ledger.maker(checkpoint) == "a"
    assert world.ledger.maker(digest("data")) is None


def test_two_writers_of_one_lease_do_not_fork_the_chain(world: World) -> None:
    writer = world.open("a")
    twin = world.ledger.seize("a", "twin", TTL)
    twin.append([metrics(1)])
    other = type(twin)(world.ledger, world.database, world.leases, twin.lease, "a")
    other.append([metrics(2)])
    with pytest.raises(ChainError) as caught:
        twin.append([metrics(2)])
    assert caught.value.state == "forked"
    twin.append([metrics(3)])
    assert [event.step for event in world.ledger.events("a")] == [0, 1, 2, 3]
    world.ledger.verify("a")
    assert writer.lease.generation < twin.lease.generation


@pytest.mark.parametrize("job_id", ["", "../a", "a/b", "a" * 81, ".a", "a\n"])
def test_an_id_that_could_not_name_a_file_is_refused(world: World, job_id: str) -> None:
    with pytest.raises(InputError, match="no job id"):
        world.open(job_id)
    assert world.ledger.jobs() == []


def test_kinds_with_a_verb_of_their_own_are_not_appended(world: World) -> None:
    writer = world.open("a")
    with pytest.raises(InputError, match="use close"):
        writer.append([Draft(Kind.JOB_CLOSED, 0, 0, {"reason": "completed", "output": None, "error": None})])
    with pytest.raises(InputError, match="tree: Field required"):
        Draft(Kind.CHECKPOINT_SAVED, 0, 0, {})
    assert len(world.ledger.events("a")) == 1


def test_a_ledger_that_is_locked_says_so_and_goes_on_afterwards(world: World, database_url: str) -> None:
    world.open("a")
    with closing(Database.open(database_url, busy_timeout=0.2)) as impatient:
        writer = Ledger(impatient, world.trees, Leases(impatient)).seize("a", "impatient", TTL)
        with world.database.write() as connection:
            one_writer(connection, ledger_events)
            with pytest.raises(LedgerError, match="cannot be appended to") as caught:
                writer.append([metrics(1)])
        assert caught.value.exit_code == 3
        writer.append([metrics(1)])
    assert kinds(world.ledger.events("a")) == ["job_opened", "metrics"]
    world.ledger.verify("a")


def test_a_ledger_that_is_gone_says_so(world: World) -> None:
    writer = world.open("a")
    with world.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE ledger_events RENAME TO gone")
    for use in (lambda: world.ledger.verify("a"), world.ledger.manifest, lambda: writer.append([metrics(1)])):
        with pytest.raises(LedgerError, match="see that its database is there and whole"):
            use()
