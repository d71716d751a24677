"""A backfill of old weeks, in any order, fills in those weeks and moves no pointer, stage or snapshot of another."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftpipeline.cycle.stages import EVAL_SETS
from ftpipeline.digest import Digest
from ftpipeline.registry.stages import Stage
from ftpipeline.steps.intake import Columns, take_in
from ftpipeline.steps.rows import SnapshotRow
from ftpipeline.steps.tables import ROWS, read_rows
from ftpipeline.steps.windows import Window
from ftpipeline.store.home import Home
from ftpipeline_tests.orchestration.location import Location, tiny_location
from ftpipeline_tests.registry.world import World
from ftpipeline_tests.tiny_model import LABELS, WORDS

NAME = "tiny"
FIRST = date(2026, 4, 6)
OLD_WEEKS = 26
NEWEST = FIRST + timedelta(weeks=OLD_WEEKS)
WEEKLY = ("snapshot", "curate", "split")
WINDOW = timedelta(days=14)

Latest = Mapping[tuple[str, str | None], Digest]


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _tickets(weeks: int) -> list[tuple[Any, ...]]:
    """Return tickets of some weeks; the last of each week becomes known a day after the week's end."""
    rows = []
    for week in range(weeks):
        for n in range(12):
            event = _moment(FIRST) + timedelta(weeks=week, hours=13 * n)
            known = event + timedelta(minutes=1) if n < 11 else _moment(FIRST) + timedelta(weeks=week + 1, days=1)
            text = f"please {WORDS[(week + n) % 15]} {WORDS[(3 * n) % 15]} w{week} n{n}"
            rows.append((f"W{week:02}-{n:02}", text, LABELS[n % len(LABELS)], event, known, f"c{week}-{n // 2}"))
    return rows


def _write(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS tickets (ticket_id VARCHAR, body VARCHAR, queue VARCHAR, "
            "created_at TIMESTAMPTZ, ingested_at TIMESTAMPTZ, customer_id VARCHAR)"
        )
        connection.executemany("INSERT INTO tickets VALUES (?, ?, ?, ?, ?, ?)", rows)


@pytest.fixture
def location(tmp_path: Path) -> Iterator[Location]:
    columns = {"id": "ticket_id", "text": "body", "label": "queue", "event_time": "created_at"}
    sections: dict[str, Any] = {
        "week": {"timezone": "UTC", "starts": "monday", "first": FIRST.isoformat()},
        "source": {
            "duckdb": "backfill.duckdb",
            "query": "SELECT * FROM tickets",
            "window_days": WINDOW.days,
            "columns": {**columns, "ingestion_time": "ingested_at", "groups": ["customer_id"]},
        },
        "curate": {"near_duplicates": 1.0},
        "split": {"validation_fraction": 0.3},
    }
    with tiny_location(tmp_path, name=NAME, **sections) as location:
        _write(location.pipeline.path.parent / "backfill.duckdb", _tickets(OLD_WEEKS + 1))
        yield location


def _latest(location: Location) -> Latest:
    """Return what every partition of every asset holds."""
    assets = [f"{'/'.join(location.key(stage).path)}" for stage in (*EVAL_SETS, *WEEKLY)]
    held = [pointer for asset in assets for pointer in location.store.pointers.held(asset)]
    return {(pointer.asset, pointer.partition): pointer.digest for pointer in held}


def _run(location: Location, week: date, stages: Sequence[str] = WEEKLY) -> None:
    assert location.run(*stages, week=week.isoformat()).success


def _ids(location: Location, folder: Path, snapshot: Digest) -> list[str]:
    path = folder / "rows.parquet"
    path.write_bytes(location.store.trees.read(snapshot, ROWS))
    return [row.id for row in read_rows(path, SnapshotRow)]


@contextmanager
def _world(folder: Path) -> Iterator[World]:
    """Open a registry of stand-ins for trained models, whose eval sets are no tables, in a home of its own."""
    home = Home(folder / "registry")
    with closing(home.open()) as store:
        yield World(store.database, home.store_root, NAME)


@pytest.mark.slow
def test_a_shuffled_backfill_of_26_weeks_moves_nothing_of_another_week(location: Location, tmp_path: Path) -> None:
    with _world(tmp_path) as registry:
        _backfill(location, registry, tmp_path)


def _backfill(location: Location, registry: World, folder: Path) -> None:
    assert location.run(*EVAL_SETS, week=NEWEST.isoformat()).success
    _run(location, NEWEST)
    registry.register("newest", week=NEWEST.isoformat())
    registry.promote("newest", "production")
    registry.register("candidate", week=NEWEST.isoformat())
    stages = registry.registry.pointers(NAME)
    weeks = [FIRST + timedelta(weeks=n) for n in range(OLD_WEEKS)]
    random.Random(0).shuffle(weeks)

    held = _latest(location)
    for n, week in enumerate(weeks):
        _run(location, week, WEEKLY if n % 9 == 0 else WEEKLY[:1])
        registry.register(f"old {week}", week=week.isoformat())
        now = _latest(location)
        assert {place: now[place] for place in held} == held
        assert {partition for _, partition in now.keys() - held.keys()} == {week.isoformat()}
        assert registry.registry.pointers(NAME) == stages
        held = now

    snapshots = {week: held["/".join(location.key("snapshot").path), week.isoformat()] for week in [*weeks, NEWEST]}
    assert len(set(snapshots.values())) == OLD_WEEKS + 1
    _each_late_row_is_in_the_next_snapshot_alone(location, folder, snapshots)

    late = (f"W00-{n:02}" for n in range(50, 53))  # of weeks that are frozen, known today
    event, today = _moment(FIRST), _moment(NEWEST) + timedelta(weeks=2)
    _write(location.pipeline.path.parent / "backfill.duckdb", [(i, i, LABELS[0], event, today, i) for i in late])
    for n, week in enumerate(weeks[:5]):
        _run(location, week, WEEKLY if n == 0 else WEEKLY[:1])
    assert _latest(location) == held
    assert registry.holds(Stage.CANDIDATE) == registry.artifact("candidate")


def _each_late_row_is_in_the_next_snapshot_alone(
    location: Location, folder: Path, snapshots: Mapping[date, Digest]
) -> None:
    holders: dict[str, list[date]] = {}
    for week, snapshot in sorted(snapshots.items()):
        ids = _ids(location, folder, snapshot)
        assert len(ids) == len(set(ids))
        for ident in ids:
            holders.setdefault(ident, []).append(week)
    for n in range(OLD_WEEKS):
        week = FIRST + timedelta(weeks=n)
        assert holders[f"W{n:02}-00"] == [week, week + timedelta(weeks=1)]  # known in time, in a window of two weeks
        assert holders[f"W{n:02}-11"] == [week + timedelta(weeks=1)]


delays = st.integers(0, 3 * 7 * 24)


@given(rows=st.lists(st.tuples(st.integers(0, 6 * 7 * 24 - 1), delays), min_size=1, max_size=12), data=st.data())
def test_whatever_order_weeks_are_taken_in_a_row_is_first_held_by_the_week_that_ends_after_it_was_known(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    ends = [_moment(FIRST) + timedelta(weeks=n) for n in range(1, 12)]
    held = {end: _taken(rows, end) for end in data.draw(st.permutations(ends))}
    for n, (hours, delay) in enumerate(rows):
        event = _moment(FIRST) + timedelta(hours=hours)
        known = event + timedelta(hours=delay)
        expected = [end for end in ends if end - WINDOW <= event < end and known < end]
        assert [end for end in ends for ident in held[end] if ident == f"T{n}"] == expected
        if delay < 7 * 24:  # later than a week after its own week, a row has left a window of two weeks
            assert expected[:1] == [min(end for end in ends if known < end)]


def _taken(rows: Sequence[tuple[int, int]], end: datetime) -> list[str]:
    import pyarrow as pa

    events = [_moment(FIRST) + timedelta(hours=hours) for hours, _ in rows]
    known = [event + timedelta(hours=delay) for event, (_, delay) in zip(events, rows, strict=True)]
    stamp = pa.timestamp("us", tz="UTC")
    table = pa.table(
        {
            "id": [f"T{n}" for n in range(len(rows))],
            "text": ["text"] * len(rows),
            "label": ["q"] * len(rows),
            "event": pa.array(events, stamp),
            "known": pa.array(known, stamp),
        }
    )
    window = Window(end - WINDOW, end, None, end + timedelta(weeks=52))
    columns = Columns("id", "text", "label", "event", "known", None, ())
    return [row.id for row in take_in(table, columns, window).accepted]


@settings(max_examples=6)
@given(order=st.permutations(range(5)))
def test_in_whatever_order_weeks_are_registered_the_latest_is_the_candidate(
    order: list[int], tmp_path_factory: Any
) -> None:
    with _world(tmp_path_factory.mktemp("any order")) as world:
        for place, week in enumerate(order, start=1):
            world.register(f"week {week}", week=(FIRST + timedelta(weeks=week)).isoformat())
            assert world.holds("candidate") == world.artifact(f"week {max(order[:place])}")
