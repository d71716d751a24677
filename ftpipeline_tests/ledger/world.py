"""A ledger over a database of either kind, and jobs as short as tests want them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest
from ftpipeline.ledger.events import Draft, Event, Kind
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.ledger.writer import JobWriter
from ftpipeline.receipts import SigningKey
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.database import Database
from ftpipeline.store.leases import Leases
from ftpipeline.store.quarantine import Quarantine
from ftpipeline.store.trees import Trees
from ftpipeline_tests.store.rows import digest, put_tree

TTL = 600.0


@dataclass(frozen=True)
class World:
    """A ledger and what it stands on."""

    database: Database
    trees: Trees
    leases: Leases
    quarantine: Quarantine
    ledger: Ledger
    key: SigningKey

    @classmethod
    def at(cls, folder: Path, database: Database) -> "World":
        """Put blobs and the key into `folder`."""
        trees, leases = Trees(LocalBlobs(folder / "blobs")), Leases(database)
        key = SigningKey.of_home(folder)
        ledger = Ledger(database, trees, leases, lambda: key)
        return cls(database, trees, leases, Quarantine(database), ledger, key)

    def another(self) -> Ledger:
        """Return the ledger as another process sees it."""
        return Ledger(self.database, self.trees, Leases(self.database), lambda: self.key)

    def open(self, job_id: str, **fields: Any) -> JobWriter:
        """Open the job's next attempt."""
        return self.ledger.open_job(job_id, opened(**fields), f"holder of {job_id}", TTL)

    def save(self, writer: JobWriter, step: int) -> Event:
        """Save a checkpoint of the job, with weights of its own."""
        weights = f"{writer.job_id} {writer.attempt} {step}".encode()
        return writer.append([saved(step, put_tree(self.trees, weights=weights))])[0]


def opened(**fields: Any) -> dict[str, Any]:
    """Return the payload of `job_opened`."""
    return {
        "run_id": "demo-2026-W45",
        "pipeline": "demo",
        "week": "2026-W45",
        "step_key": digest("key"),
        "inputs": {"split": digest("split")},
        "params_digest": digest("params"),
        "family": None,
        "checkpoint_steps": 10,
        "resumed_from": None,
        "code": digest("code"),
        **fields,
    }


def point(step: int, loss: Any = 1.5) -> dict[str, Any]:
    """Return one point of metrics."""
    return {
        "step": step,
        "epoch": step / 100,
        "loss": loss,
        "grad_norm": 0.5,
        "learning_rate": 2e-4,
        "tokens": 128,
        "accumulation": 1,
    }


def metrics(*steps: int) -> Draft:
    """Return a batch of points."""
    return Draft(Kind.METRICS, steps[-1], steps[-1] / 100, {"points": [point(step) for step in steps]})


def saved(step: int, tree: Digest) -> Draft:
    """Return what is said of a saved checkpoint."""
    return Draft(Kind.CHECKPOINT_SAVED, step, step / 100, {"tree": tree})


def kinds(events: Sequence[Event]) -> list[Kind]:
    """Return the kinds of events."""
    return [event.kind for event in events]
