"""What the ledger keeps from garbage collection."""

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.cycle import maintenance
from ftpipeline.digest import Digest
from ftpipeline.errors import LedgerError
from ftpipeline.ledger.events import Draft, Event, Kind, Use
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.ledger.quarantined import attempt_digest
from ftpipeline.ledger.retention import retained
from ftpipeline.ledger.roots import ledger_roots
from ftpipeline.store.gc import collect
from ftpipeline.store.home import Home
from ftpipeline_tests.ledger.chains import NOON, changed
from ftpipeline_tests.ledger.test_enforcement import following, insert
from ftpipeline_tests.ledger.world import TTL, World, opened, saved
from ftpipeline_tests.store.rows import digest, put_tree

PLACES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 120)), unique=True, max_size=8)


def checkpoint(attempt: int, step: int) -> Event:
    """Return the event of a checkpoint."""
    payload = {"tree": digest(f"{attempt} {step}")}
    return Event("a", attempt, attempt * 1000 + step, None, step, 0.0, NOON, Kind.CHECKPOINT_SAVED, payload)


@given(PLACES, st.integers(1, 4), st.data())
def test_the_newest_are_kept_by_number_and_what_is_needed_whatever_its_age(
    places: list[tuple[int, int]], keep: int, data: st.DataObject
) -> None:
    some = st.sets(st.sampled_from(places)) if places else st.just(set())
    needed, marked = data.draw(some), data.draw(some)
    kept = retained(
        [checkpoint(*place) for place in places],
        keep,
        {digest(f"{attempt} {step}") for attempt, step in needed},
        {digest(f"{attempt} {step}") for attempt, step in marked},
    )
    clean = sorted(place for place in places if place not in marked)
    assert [(event.attempt, event.step) for event in kept] == sorted({*clean[-keep:], *needed, *marked})


def test_without_a_limit_everything_is_kept() -> None:
    events = [checkpoint(1, step) for step in (5, 50, 100)]
    assert retained(events[::-1], None, set()) == events


def steps(world: World, job_id: str = "a") -> list[int]:
    return [event.step for event in world.ledger.retained(job_id)]


def test_what_another_job_consumed_and_what_is_under_quarantine_is_kept(world: World) -> None:
    a, b = world.open("a", keep=2), world.open("b")
    trees = {step: world.save(a, step).payload["tree"] for step in (8, 9, 10, 11, 100)}
    assert steps(world) == [11, 100]
    b.consume("a", 8, Use.WARM_START, 0)
    a.consume("a", 9, Use.RESUME, 12)
    assert steps(world) == [8, 11, 100]
    world.quarantine.mark(trees[100], digest("receipt"), "diverged")
    assert steps(world) == [8, 10, 11, 100]
    world.quarantine.lift(trees[100], digest("another"), "was none")
    assert steps(world) == [8, 11, 100]
    world.quarantine.mark(attempt_digest("a", 1), digest("receipt"), "unrecoverable")
    assert steps(world) == [8, 9, 10, 11, 100]
    assert steps(world, "b") == steps(world, "no such job") == []


def test_the_roots_are_retained_trees_consumed_artifacts_of_jobs_and_receipts(world: World) -> None:
    a = world.open("a", keep=1)
    old, new = (world.save(a, step).payload["tree"] for step in (10, 20))
    artifacts = [("labels", {"job_id": "b"}), ("split", None)]
    a.append(
        [
            Draft(Kind.ARTIFACT_CONSUMED, 20, 0.2, {"name": name, "tree": digest(name), "maker": maker, "kind": "data"})
            for name, maker in artifacts
        ]
    )
    a.append([Draft(Kind.ISOLATION_ACTION, 20, 0.2, {"receipt": digest("receipt"), "action": "halt"})])
    with world.database.read() as connection:
        assert ledger_roots(connection) == {new, digest("labels"), digest("receipt")}
    assert old != new


def test_with_events_of_a_newer_schema_nobody_knows_the_roots(world: World) -> None:
    writer = world.open("a")
    insert(world, changed(following(writer), schema="ftpipeline.ledger_event/2"), writer.lease.generation)
    with world.database.read() as connection, pytest.raises(LedgerError, match="1 events, from 1 on"):
        ledger_roots(connection)


def test_collecting_garbage_removes_dropped_checkpoints_and_nothing_that_was_consumed(home: Home) -> None:
    later = datetime.now(UTC) + timedelta(days=30)
    with closing(home.open()) as store:
        ledger = ledger_of(store)
        trees: dict[int, Digest] = {}
        a = ledger.open_job("a", opened(keep=1), "holder", TTL)
        for step in (10, 20, 30):
            trees[step] = put_tree(store.trees, weights=str(step).encode())
            a.append([saved(step, trees[step])])
        ledger.open_job("b", opened(), "another", TTL).consume("a", 10, Use.TEACHER, 0)
        collect(store, maintenance.ROOTS, timedelta(hours=24), later, dry_run=False)
        assert [step for step, tree in trees.items() if store.trees.is_present(tree)] == [10, 30]
        assert maintenance.fsck(store).problems == ()
        ledger.verify("a")
