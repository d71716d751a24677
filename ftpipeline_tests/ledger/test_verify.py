"""Tampering with the database past its triggers, and how it is told."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, update

from ftpipeline.errors import ChainError, LedgerError
from ftpipeline.ledger.chain import StoredEvent
from ftpipeline.ledger.events import SCHEMA, Use
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.receipts import SigningKey
from ftpipeline.store.leases import Leases
from ftpipeline.store.tables import ledger_events, ledger_jobs, ledger_signed_heads
from ftpipeline_tests.ledger.chains import changed
from ftpipeline_tests.ledger.tamper import without_triggers
from ftpipeline_tests.ledger.world import World, metrics


def history(world: World, job_id: str = "a") -> list[StoredEvent]:
    """Open a job, let it train, and return its events: metrics at 1 to 3 and 5, a checkpoint at 4."""
    writer = world.open(job_id)
    writer.append([metrics(1), metrics(2), metrics(3)])
    world.save(writer, 10)
    writer.append([metrics(11)])
    return world.ledger.stored(job_id)


def broken(ledger: Ledger, job_id: str = "a", **rest: Any) -> tuple[str, int | None]:
    """Return state and place of what is wrong."""
    with pytest.raises(ChainError) as caught:
        ledger.verify(job_id, **rest)
    assert caught.value.job_id == job_id
    assert caught.value.exit_code == 1
    return caught.value.state, caught.value.seq


def cut_off(connection: Connection, seq: int) -> None:
    connection.execute(ledger_events.delete().where(ledger_events.c.seq >= seq))


def set_head(connection: Connection, event: StoredEvent) -> None:
    connection.execute(update(ledger_jobs).values(seq=event.seq, digest=event.digest))


def rewrite(connection: Connection, events: list[StoredEvent]) -> None:
    """Put other events in the place of all."""
    connection.execute(ledger_events.delete())
    connection.execute(ledger_events.insert(), [{**vars(event), "generation": 1} for event in events])
    set_head(connection, events[-1])


def forged(events: list[StoredEvent], place: int) -> list[StoredEvent]:
    """Return the chain as if another event had stood at a place, with digests that fit throughout."""
    chain: list[StoredEvent] = []
    for event in events:
        prev = chain[-1].digest if chain else None
        fields = {"prev": prev} | ({"step": 77} if event.seq == place else {})
        chain.append(changed(event, **fields))
    return chain


def test_a_job_that_never_opened_has_no_chain(world: World) -> None:
    assert broken(world.ledger) == ("missing", None)


@pytest.mark.parametrize("place", range(6))
def test_a_changed_row_is_located(world: World, place: int) -> None:
    history(world)
    with without_triggers(world.database) as connection:
        connection.execute(update(ledger_events).where(ledger_events.c.seq == place).values(step=77))
    assert broken(world.another()) == ("unverifiable", place)


@pytest.mark.parametrize("place", range(6))
def test_a_row_that_is_gone_is_located(world: World, place: int) -> None:
    history(world)
    with without_triggers(world.database) as connection:
        connection.execute(ledger_events.delete().where(ledger_events.c.seq == place))
    assert broken(world.another()) == ("missing", place)


@given(st.integers(0, 5), st.integers(0, 7), st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_of_a_stored_payload_is_located(world: World, place: int, bit: int, data: st.DataObject) -> None:
    events = world.ledger.stored("a") or history(world)
    payload = bytearray(events[place].payload.encode())
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at] ^= 1 << bit
    if payload[at] in (0, *range(128, 256)) and world.database.where.startswith("postgresql"):
        return  # PostgreSQL itself refuses to store what is no text
    _write_payload(world, place, payload.decode("latin-1"))
    assert broken(world.another()) == ("unverifiable", place)
    _write_payload(world, place, events[place].payload)
    world.another().verify("a")


def _write_payload(world: World, place: int, payload: str) -> None:
    with without_triggers(world.database) as connection:
        connection.execute(update(ledger_events).where(ledger_events.c.seq == place).values(payload=payload))


def test_bytes_that_are_no_text_are_told_as_unverifiable(world: World) -> None:
    history(world)
    with without_triggers(world.database) as connection:
        if connection.dialect.name != "sqlite":
            pytest.skip("PostgreSQL stores no text that is none")
        connection.exec_driver_sql("UPDATE ledger_events SET payload = CAST(x'7bff7d' AS TEXT) WHERE seq = 2")
    assert broken(world.another())[0] == "unverifiable"


def test_a_chain_that_was_cut_off_is_told_by_its_head(world: World) -> None:
    history(world)
    with without_triggers(world.database) as connection:
        cut_off(connection, 5)
    assert broken(world.another()) == ("missing", 5)


def test_a_chain_that_was_cut_off_with_its_head_is_told_by_a_signed_head(world: World) -> None:
    events = history(world)
    with without_triggers(world.database) as connection:
        cut_off(connection, 4)
        set_head(connection, events[3])
    assert broken(world.another()) == ("missing", 4)


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_chain_that_was_rewritten_whole_is_told_as_forked_by_a_signed_head(world: World, place: int) -> None:
    events = history(world)
    with without_triggers(world.database) as connection:
        rewrite(connection, forged(events, place))
    assert broken(world.another()) == ("forked", 4)


def test_what_is_rewritten_after_the_last_signed_head_is_told_by_whoever_trusts_a_later_place(world: World) -> None:
    events = history(world)
    trusted = world.ledger.verify("a")
    with without_triggers(world.database) as connection:
        rewrite(connection, forged(events, 5))
    world.another().verify("a")
    assert broken(world.another(), trusted=trusted) == ("forked", 5)


def test_a_head_that_is_not_the_newest_event_is_a_fork(world: World) -> None:
    events = history(world)
    with without_triggers(world.database) as connection:
        set_head(connection, changed(events[5], step=77))
    assert broken(world.another()) == ("forked", 5)
    with without_triggers(world.database) as connection:
        connection.execute(ledger_jobs.delete())
    assert broken(world.another()) == ("missing", None)


def test_a_head_that_another_key_signed_is_not_believed(world: World, tmp_path: Any) -> None:
    history(world)
    stranger = SigningKey.of_home(tmp_path / "stranger")
    ledger = Ledger(world.database, world.trees, Leases(world.database), lambda: stranger)
    assert broken(ledger) == ("unverifiable", 4)


def test_a_signed_head_of_another_job_or_place_is_not_believed(world: World) -> None:
    history(world)
    history(world, "b")
    foreign = world.ledger.signed_heads("b")[0].envelope
    with without_triggers(world.database) as connection:
        connection.execute(
            update(ledger_signed_heads).where(ledger_signed_heads.c.job_id == "a").values(envelope=foreign)
        )
    assert broken(world.another()) == ("unverifiable", 4)


def test_events_since_a_trusted_place_are_checked_and_nothing_else(world: World) -> None:
    history(world)
    trusted = world.ledger.verify("a")
    world.ledger.seize("a", "guard", 60).append([metrics(12)])
    with without_triggers(world.database) as connection:
        connection.execute(update(ledger_events).where(ledger_events.c.seq == 2).values(step=77))
    assert world.ledger.verify("a", trusted).seq == 6
    assert broken(world.ledger) == ("unverifiable", 2)


def test_events_of_a_newer_schema_are_counted_and_no_chain_with_them_is_trusted(world: World) -> None:
    events = history(world)
    newer = forged(events[:4], 9)
    for event in events[4:]:
        newer.append(changed(event, prev=newer[-1].digest, schema=f"{SCHEMA[:-1]}2", kind="checkpoint_sealed"))
    with without_triggers(world.database) as connection:
        connection.execute(ledger_signed_heads.delete())
        rewrite(connection, newer)
    ledger = world.another()
    with pytest.raises(ChainError, match="2 events, from 4 on, are of a schema not known here"):
        ledger.verify("a")
    for read in (lambda: ledger.events("a"), ledger.manifest, lambda: ledger.events("a", after_seq=4)):
        with pytest.raises(LedgerError, match="install a newer ftpipeline") as caught:
            read()
        assert caught.value.exit_code == 3
    assert [event.step for event in ledger.events("a", limit=3)] == [0, 1, 2]
    assert len(ledger.stored("a")) == len(events)
    assert [head.seq for head in ledger.jobs()] == [5]


def test_a_broken_producer_is_not_consumed_from_and_a_broken_job_does_not_go_on(world: World) -> None:
    history(world)
    b = world.open("b")
    with without_triggers(world.database) as connection:
        connection.execute(
            update(ledger_events).where(ledger_events.c.job_id == "a", ledger_events.c.seq == 1).values(step=77)
        )
    ledger = world.another()
    with pytest.raises(ChainError):
        b.consume("a", 10, Use.MERGE, 0)
    assert len(ledger.events("b")) == 1
    world.leases.release(ledger.seize("a", "guard", 60).lease)
    with pytest.raises(ChainError):
        world.open("a")
    assert "job:a" not in world.leases.held()
