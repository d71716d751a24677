"""A fleet of jobs in a ledger that nobody trains: events, checkpoints and consumptions as a training writes them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.ledger.events import CloseReason, Draft, Event, Kind, Use, number
from ftpipeline.ledger.ledger import Ledger, ledger_of
from ftpipeline.ledger.writer import JobWriter
from ftpipeline.steps.ports import Terminator
from ftpipeline.store.opened import Store
from ftpipeline.store.tables import ledger_events
from ftpipeline_tests.ledger.chains import changed
from ftpipeline_tests.store.rows import put_tree

TTL = 60.0
_STEPS_A_BATCH = 50


class EndsRuns(Terminator):
    """An orchestrator of which every run ends when it is asked to; remembers which were."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _terminate(self, run_ids: Collection[str]) -> frozenset[str]:
        self.asked += run_ids
        return frozenset(run_ids)


@dataclass
class TrainedJob:
    """One attempt of a job."""

    store: Store
    writer: JobWriter
    step: int = 0
    trees: dict[int, Digest] = field(default_factory=dict)

    @property
    def job_id(self) -> str:
        return self.writer.job_id

    def train(self, until: int, loss: float | None = None, **rest: Any) -> None:
        """Report a point for every step up to `until`: a loss that falls slowly, or the one given."""
        steps = range(self.step + 1, until + 1)
        points = [point(step, loss, **rest) for step in steps]
        for start in range(0, len(points), _STEPS_A_BATCH):
            batch = points[start : start + _STEPS_A_BATCH]
            self.append(Kind.METRICS, batch[-1]["step"], {"points": batch})
        self.step = until

    def save(self) -> Digest:
        """Save a checkpoint at the step that was reached."""
        tree = put_tree(self.store.trees, weights=f"{self.job_id} {self.writer.attempt} {self.step}".encode())
        self.append(Kind.CHECKPOINT_SAVED, self.step, {"tree": tree})
        self.trees[self.step] = tree
        return tree

    def consume(self, producer: "TrainedJob", step: int, use: Use = Use.MERGE) -> None:
        """Read a checkpoint of another job."""
        self.writer.consume(producer.job_id, step, use, self.step)

    def read(self, tree: Digest, kind: str = "data", maker: str | None = None) -> None:
        """Read an artifact."""
        made = None if maker is None else {"job_id": maker}
        self.append(Kind.ARTIFACT_CONSUMED, self.step, {"name": kind, "tree": tree, "maker": made, "kind": kind})

    def close(self, output: Digest | None = None) -> Event:
        """End well."""
        return self.writer.close(CloseReason.COMPLETED, output)

    def slip_in(self, ledger: Ledger, payload: str, **fields: Any) -> None:
        """Write an event that this version would not write, and go on after it."""
        last = ledger.stored(self.job_id)[-1]
        following = {"seq": last.seq + 1, "prev": last.digest, "step": self.step, "kind": "metrics"}
        event = changed(last, **{**following, "payload": payload, **fields})
        row = {**vars(event), "generation": self.writer.lease.generation}
        with self.store.database.write() as connection:
            connection.execute(ledger_events.insert().values(row))
        self.writer = ledger.seize(self.job_id, f"launcher of {self.job_id}", TTL)

    def append(self, kind: Kind, step: int, payload: Mapping[str, Any]) -> None:
        self.writer.append([Draft(kind, step, step / 100, payload)])


@dataclass
class World:
    """A store with a ledger of jobs."""

    store: Store

    def __post_init__(self) -> None:
        self.ledger: Ledger = ledger_of(self.store)
        self.jobs: dict[str, TrainedJob] = {}

    def open(self, name: str, resumed_from: Mapping[str, Any] | None = None, **rest: Any) -> TrainedJob:
        """Begin the next attempt of a job."""
        payload = {**opened(name), "resumed_from": resumed_from, **rest}
        writer = self.ledger.open_job(name, payload, f"launcher of {name}", TTL)
        step = 0 if resumed_from is None else resumed_from["step"]
        self.jobs[name] = TrainedJob(self.store, writer, step)
        return self.jobs[name]


def opened(name: str) -> dict[str, Any]:
    """Return the payload of a job's beginning."""
    return {
        "run_id": f"run of {name}",
        "pipeline": "tiny",
        "week": "2026-W45",
        "step_key": of_bytes(f"key of {name}".encode()),
        "inputs": {},
        "params_digest": of_bytes(b"params"),
        "family": None,
        "checkpoint_steps": 50,
        "resumed_from": None,
        "code": of_bytes(b"code"),
    }


def point(step: int, loss: float | None = None, **rest: Any) -> dict[str, Any]:
    """Return a point of a healthy training, or one with the loss given."""
    healthy = 2.0 - step / 1000 + 0.01 * (step * 7919 % 11 - 5)
    measured = {"loss": number(healthy if loss is None else loss), "grad_norm": 1.0, "learning_rate": 0.001}
    return {"step": step, "epoch": step / 100, "tokens": 100, "accumulation": 1, **measured, **rest}


def six_jobs(store: Store) -> World:
    """Return the fleet of the incident: A diverges at step 141, B and C merge, F starts from it, D and E are clean."""
    world = World(store)
    a, b, c, d, e, f = (world.open(name) for name in "ABCDEF")
    for job, steps in ((a, (50, 100, 140)), (b, (40,)), (c, (60,)), (d, (50,)), (e, (30,))):
        for step in steps:
            job.train(step)
            job.save()
    e.consume(a, 100)
    a.train(145, float("nan"))
    a.save()
    b.train(60)
    b.consume(a, 145)
    b.train(80)
    b.save()
    c.train(70)
    c.consume(b, 80)
    c.train(90)
    c.save()
    f.consume(a, 145, Use.WARM_START)
    f.train(20)
    f.save()
    return world
