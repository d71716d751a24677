"""The ledger: appends and consumptions of 8 processes at once, each durable when it returns, and what a tick costs.

SQLite with `synchronous=FULL` in a temporary folder; PostgreSQL with `fsync` on beside it, if its server is installed.
A tick is what the sensor does: where every job stands, what is new of those that moved, and the detector's state of
each. It is measured in CPU-seconds on 1,000 open jobs, 100 of which wrote 50 points since the last one, with a history
of `--points` and of a tenth of them. The stated target is for 10^7 and 10^6: `--points 10000000` takes 2 GB of disk.
"""

import math
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _measure import Figure, arguments, at_least, at_most, report
from sqlalchemy import insert, select

from ftpipeline.cycle.scan import NO_LIMITS
from ftpipeline.cycle.watch import watch
from ftpipeline.digest import canonical_json, of_bytes
from ftpipeline.ledger.chain import StoredEvent
from ftpipeline.ledger.events import SCHEMA, Draft, Kind, Use
from ftpipeline.ledger.ledger import Ledger, lease_name, ledger_of
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.database import Database
from ftpipeline.store.home import Home
from ftpipeline.store.leases import Leases
from ftpipeline.store.opened import Store
from ftpipeline.store.tables import detector_states, leases, ledger_events
from ftpipeline.store.trees import Trees
from ftpipeline_tests.store.postgres_server import private_server

_PROCESSES, _BATCH, _TTL = 8, 50, 3600.0
_JOBS, _MOVED, _TICKS = 1000, 100, 7
_SOME = of_bytes(b"some")
_OPENED = {
    "run_id": "bench-2026-W45",
    "pipeline": "bench",
    "week": "2026-W45",
    "step_key": _SOME,
    "inputs": {"split": _SOME},
    "params_digest": _SOME,
    "family": None,
    "checkpoint_steps": 100,
    "resumed_from": None,
    "code": _SOME,
}


def main() -> None:
    """Measure all of it."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long processes write")
    parser.add_argument("--points", type=int, default=1_000_000, help="stored points of the longer history")
    options = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        sqlite = f"sqlite:///{folder}/ftpipeline.db"
        figures += _writing("SQLite", sqlite, Path(folder), options.seconds)
        figures.append(Figure("this disk: 32 KiB appended and synced, one process", _syncs(Path(folder)), "1/s"))
    figures[0] = at_least(figures[0].name, figures[0].value, 20_000, figures[0].unit)
    with _postgres() as url:
        if url is not None:
            with tempfile.TemporaryDirectory() as folder:
                figures += _writing("PostgreSQL", url, Path(folder), options.seconds)
    report([*figures, *_ticks(options.points)], options.json)


def _writing(name: str, url: str, folder: Path, seconds: float) -> list[Figure]:
    """Return the rates of appends and of consumptions by all processes together."""
    with closing(Database.open(url)) as database:
        _save_a_checkpoint(database, folder)
    points = _rate(_append, url, folder, seconds)
    consumed = _rate(_consume, url, folder, seconds)
    return [
        Figure(f"{name}: points in batches of {_BATCH}, {_PROCESSES} processes", points, "1/s"),
        Figure(f"{name}: CPU of appending one point, one process", _cost_of_a_point(url, folder) * 1e6, "us"),
        Figure(f"{name}: consumptions, {_PROCESSES} processes", consumed, "1/s"),
    ]


def _rate(work: Any, url: str, folder: Path, seconds: float) -> float:
    context = get_context("spawn")
    start, results = context.Barrier(_PROCESSES), context.Queue()
    processes = [
        context.Process(target=work, args=(number, url, folder, seconds, start, results))
        for number in range(_PROCESSES)
    ]
    for process in processes:
        process.start()
    rates: list[float] = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return sum(rates)


@contextmanager
def _ledger(url: str, folder: Path) -> Iterator[Ledger]:
    with closing(Database.open(url)) as database:
        yield Ledger(database, Trees(LocalBlobs(folder / "blobs")), Leases(database))


def _append(number: int, url: str, folder: Path, seconds: float, start: Any, results: Any) -> None:
    with _ledger(url, folder) as ledger:
        writer = ledger.open_job(f"append-{number}", _OPENED, f"process {number}", _TTL)
        drafts = [Draft(Kind.METRICS, _BATCH, 1.0, {"points": _points(0)})]
        start.wait()
        began, written = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            writer.append(drafts)
            written += _BATCH
        results.put(written / (time.perf_counter() - began))


def _consume(number: int, url: str, folder: Path, seconds: float, start: Any, results: Any) -> None:
    with _ledger(url, folder) as ledger:
        writer = ledger.open_job(f"consume-{number}", _OPENED, f"process {number}", _TTL)
        start.wait()
        began, consumed = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            writer.consume("producer", 10, Use.REFERENCE, consumed)
            consumed += 1
        results.put(consumed / (time.perf_counter() - began))


def _cost_of_a_point(url: str, folder: Path) -> float:
    """Return the CPU-seconds of one point in a batch, without anybody beside."""
    with _ledger(url, folder) as ledger:
        writer = ledger.open_job("alone", _OPENED, "alone", _TTL)
        drafts = [Draft(Kind.METRICS, _BATCH, 1.0, {"points": _points(0)})]
        began = time.process_time()
        for _ in range(100):
            writer.append(drafts)
        return (time.process_time() - began) / (100 * _BATCH)


def _syncs(folder: Path) -> float:
    """Return how often the disk takes about what a commit writes: no ledger is faster than its disk."""
    with (folder / "synced").open("wb", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(100):
            file.write(bytes(32 << 10))
            os.fsync(file.fileno())
        return 100 / (time.perf_counter() - began)


def _save_a_checkpoint(database: Database, folder: Path) -> None:
    trees = Trees(LocalBlobs(folder / "blobs"))
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "weights").write_bytes(b"weights")
    writer = Ledger(database, trees, Leases(database)).open_job("producer", _OPENED, "producer", _TTL)
    writer.append([Draft(Kind.CHECKPOINT_SAVED, 10, 0.1, {"tree": trees.put(folder / "checkpoint")})])


def _points(batch: int) -> list[dict[str, Any]]:
    """Return a batch of a healthy loss."""
    noise = random.Random(batch)
    steps = range(batch * _BATCH + 1, (batch + 1) * _BATCH + 1)
    return [
        {
            "step": step,
            "epoch": step / 1000,
            "loss": 1 + math.exp(-step / 500) + noise.gauss(0, 0.02),
            "grad_norm": 1 + noise.gauss(0, 0.05),
            "learning_rate": 2e-4,
            "tokens": 4096,
            "accumulation": 1,
        }
        for step in steps
    ]


def _ticks(points: int) -> list[Figure]:
    """Return what a tick costs with a history and with a tenth of it, measured in turn."""
    with tempfile.TemporaryDirectory() as folder:
        fleets = [_Fleet(Path(folder) / str(size), size) for size in (points // 10, points)]
        costs = [[fleet.tick() for fleet in fleets] for _ in range(_TICKS)]
        for fleet in fleets:
            fleet.close()
    short, long = (statistics.median(pair[side] for pair in costs) for side in (0, 1))
    ratio = statistics.median(long / short for short, long in costs)
    return [
        at_most(f"tick with {points:.0e} points / with a tenth of them", ratio, 1.2),
        Figure(f"tick over {_JOBS} open jobs, {points:.0e} points, CPU", long, "s"),
        Figure(f"tick over {_JOBS} open jobs, {points / 10:.0e} points, CPU", short, "s"),
    ]


class _Fleet:
    """Open jobs with a history that the detector has seen."""

    def __init__(self, folder: Path, points: int) -> None:
        self._folder = folder
        self._store: Store = Home(folder).open()
        self._batches = points // _JOBS // _BATCH
        self._events: dict[str, StoredEvent] = {}
        self._payloads = [_payload(batch) for batch in range(self._batches)]
        self._fill("job-0000")
        self._look()
        for number in range(1, _JOBS):
            self._fill(f"job-{number:04}")
        self._remember_the_others()

    def tick(self) -> float:
        """Let some jobs write a batch, and return the CPU-seconds of one look at all of them."""
        self._payloads.append(_payload(len(self._payloads)))
        for job_id in sorted(self._events)[:_MOVED]:
            self._insert(job_id, [self._next(job_id, Kind.METRICS, self._payloads[-1])])
        began = time.process_time()
        self._look()
        return time.process_time() - began

    def close(self) -> None:
        """Give the disk back."""
        self._store.close()
        shutil.rmtree(self._folder)

    def _look(self) -> None:
        seen = watch(self._store, ledger_of(self._store), NO_LIMITS)
        assert seen.scan.is_complete
        assert not seen.opened

    def _fill(self, job_id: str) -> None:
        """Write a job's history as a writer would have, in one transaction."""
        with self._store.database.write() as connection:
            lease = {"name": lease_name(job_id), "holder": "bench", "generation": 1, "beats": 0, "ttl": _TTL}
            connection.execute(leases.insert().values(lease))
        opened = self._next(job_id, Kind.JOB_OPENED, canonical_json({**_OPENED, "holder": "bench"}).decode())
        self._insert(job_id, [opened, *(self._next(job_id, Kind.METRICS, payload) for payload in self._payloads)])

    def _next(self, job_id: str, kind: Kind, payload: str) -> StoredEvent:
        last = self._events.get(job_id)
        seq, prev = (0, None) if last is None else (last.seq + 1, last.digest)
        event = StoredEvent(job_id, 1, seq, prev, seq * _BATCH, 1.0, "2026-11-02", SCHEMA, kind, payload, _SOME)
        self._events[job_id] = replace(event, digest=of_bytes(event.line()))
        return self._events[job_id]

    def _insert(self, job_id: str, events: list[StoredEvent]) -> None:
        with self._store.database.write() as connection:
            connection.execute(ledger_events.insert(), [{**vars(event), "generation": 1} for event in events])

    def _remember_the_others(self) -> None:
        """All jobs have the same points, so what is remembered of one is remembered of all."""
        with self._store.database.write() as connection:
            known = connection.execute(select(detector_states)).mappings().one()
            others = [{**known, "job_id": job_id} for job_id in self._events if job_id != known["job_id"]]
            connection.execute(insert(detector_states), others)


def _payload(batch: int) -> str:
    return canonical_json({"points": _points(batch)}).decode()


@contextmanager
def _postgres() -> Iterator[str | None]:
    """Yield the URL of an empty database on a durable private server; None where none is installed."""
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        yield None
        return
    with private_server(durable=True) as server, server.empty_database() as url:
        yield url


if __name__ == "__main__":
    main()
