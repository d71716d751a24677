"""What the database itself refuses, whoever asks."""

from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from ftpipeline.errors import ChainError, LeaseLostError
from ftpipeline.ledger.chain import StoredEvent
from ftpipeline.ledger.events import CloseReason, Kind, next_events
from ftpipeline.ledger.writer import JobWriter
from ftpipeline.store.tables import ledger_events, ledger_jobs, ledger_signed_heads
from ftpipeline_tests.ledger.chains import NOON, changed
from ftpipeline_tests.ledger.world import TTL, World, metrics
from ftpipeline_tests.store.rows import digest


def following(writer: JobWriter, step: int = 1) -> StoredEvent:
    """Return the event that may come next."""
    head = writer.head
    return StoredEvent.of(next_events(writer.job_id, head.attempt, (head.seq, head.digest), [metrics(step)], NOON)[0])


def insert(world: World, event: StoredEvent, generation: int) -> None:
    """Insert a row past the program."""
    with world.database.write() as connection:
        connection.execute(ledger_events.insert().values({**vars(event), "generation": generation}))


def refused(world: World, event: StoredEvent, generation: int) -> str:
    """Return the refusal of an insert."""
    with pytest.raises(DBAPIError) as caught:
        insert(world, event, generation)
    return str(caught.value.orig)


def test_the_next_event_under_the_lease_is_taken(world: World) -> None:
    writer = world.open("a")
    insert(world, following(writer), writer.lease.generation)
    assert world.ledger.verify("a").seq == 1


@pytest.mark.parametrize(
    "fields",
    [{"seq": 0}, {"seq": 2}, {"prev": digest("another")}, {"prev": None}, {"attempt": 2}, {"kind": "job_opened"}],
)
def test_an_event_that_does_not_continue_the_head_is_refused(world: World, fields: dict[str, Any]) -> None:
    writer = world.open("a")
    assert "ledger head:" in refused(world, changed(following(writer), **fields), writer.lease.generation)
    world.ledger.verify("a")


def test_the_first_event_is_an_opening(world: World) -> None:
    lease = world.leases.acquire("job:a", "me", TTL)
    assert lease is not None
    event = changed(following(world.open("b")), job_id="a", seq=0, prev=None)
    assert "ledger head:" in refused(world, event, lease.generation)
    assert world.ledger.find("a") is None


def test_an_event_under_another_generation_or_a_lease_given_back_is_refused(world: World) -> None:
    writer = world.open("a")
    event = following(writer)
    for generation in (0, writer.lease.generation + 1):
        assert "ledger lease:" in refused(world, event, generation)
    writer.release()
    assert "ledger lease:" in refused(world, event, writer.lease.generation)
    assert len(world.ledger.events("a")) == 1


def test_an_append_is_fenced_by_the_trigger_alone_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = world.open("a")
    world.ledger.seize("a", "guard", TTL)
    monkeypatch.setattr("ftpipeline.ledger.writer.fence", lambda connection, lease: None)
    with pytest.raises(LeaseLostError):
        writer.append([metrics(1)])
    assert len(world.ledger.events("a")) == 1


CHANGES = {
    "change an event": ledger_events.update().values(payload="{}"),
    "remove an event": ledger_events.delete(),
    "remove a head": ledger_jobs.delete(),
    "set a head back": ledger_jobs.update().values(seq=0, digest=digest("earlier")),
    "invent a head": ledger_jobs.update().values(seq=99),
    "change a signed head": ledger_signed_heads.update().values(envelope="{}"),
    "remove a signed head": ledger_signed_heads.delete(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_written_is_never_changed(world: World, change: str) -> None:
    writer = world.open("a")
    world.save(writer, 10)
    with (
        pytest.raises(DBAPIError, match="ledger fixed: what is written is never changed"),
        world.database.write() as connection,
    ):
        connection.execute(CHANGES[change])
    world.ledger.verify("a")


@pytest.mark.parametrize("table", ["ledger_events", "ledger_jobs", "ledger_signed_heads"])
def test_no_table_is_emptied_at_once(world: World, table: str) -> None:
    world.save(world.open("a"), 10)
    with world.database.write() as connection:
        if connection.dialect.name == "sqlite":
            pytest.skip("SQLite has no TRUNCATE; its DELETE is refused row by row")
    with pytest.raises(DBAPIError, match="ledger fixed"), world.database.write() as connection:
        connection.execute(text(f"TRUNCATE {table} CASCADE"))
    world.ledger.verify("a")


def test_an_event_is_not_replaced_by_insert_or_replace(world: World) -> None:
    writer = world.open("a")
    event = changed(world.ledger.stored("a")[0], time=NOON)
    with world.database.read() as connection:
        if connection.dialect.name != "sqlite":
            pytest.skip("PostgreSQL has no INSERT OR REPLACE")
    values = {**vars(event), "generation": writer.lease.generation}
    with pytest.raises(DBAPIError, match="ledger head:"), world.database.write() as connection:
        connection.execute(ledger_events.insert().prefix_with("OR REPLACE").values(values))
    world.ledger.verify("a")


def test_a_job_that_ended_goes_on_with_its_next_attempt_only(world: World) -> None:
    writer = world.open("a")
    writer.append([metrics(1)])
    writer.close(CloseReason.COMPLETED)
    again = world.open("a")
    assert (again.attempt, world.ledger.job("a").is_open) == (2, True)
    assert [event.attempt for event in world.ledger.events("a")] == [1, 1, 1, 2]
    with pytest.raises(LeaseLostError):
        writer.append([metrics(2)])


def test_a_batch_is_written_whole_or_not_at_all(world: World) -> None:
    writer = world.open("a")
    events = next_events("a", 1, (0, writer.head.digest), [metrics(1), metrics(2), metrics(3)], NOON)
    rows = [{**vars(StoredEvent.of(event)), "generation": writer.lease.generation} for event in events]
    rows[2]["seq"] = 7
    with pytest.raises(DBAPIError), world.database.write() as connection:
        connection.execute(ledger_events.insert(), rows)
    assert [event.kind for event in world.ledger.events("a")] == [Kind.JOB_OPENED]
    with pytest.raises(ChainError):
        world.ledger.verify("no such job")


def test_a_kind_that_its_schema_does_not_have_is_refused(world: World) -> None:
    writer = world.open("a")
    event = changed(following(writer), kind="checkpoint_merged")
    assert "ledger_events_kinds" in refused(world, event, writer.lease.generation)
    insert(world, changed(event, schema="ftpipeline.ledger_event/2"), writer.lease.generation)
