"""A training job of a tiny model in a real store: launched, cut short and launched again as often as a test likes."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftpipeline.backends.checkpoint import params_digest
from ftpipeline.cycle.jobs import TrainingJob
from ftpipeline.cycle.journal import LedgerJournal
from ftpipeline.cycle.launch import SubprocessLauncher
from ftpipeline.digest import Digest, of_bytes
from ftpipeline.ledger.events import Event, Kind
from ftpipeline.ledger.ledger import Ledger, ledger_of
from ftpipeline.schema import Checkpoints
from ftpipeline.steps.ports import WorkerRequest
from ftpipeline.store.opened import Store
from ftpipeline_tests.tiny_model import build_tiny_bert, build_tiny_split, tiny_train_params

MODULE = "ftpipeline.backends.train_worker"
JOB = "tiny-2026-W41-0123456789ab"

Hear = Callable[[int, int, str], None]


@dataclass
class TrainingWorld:
    """One job and the folder that its attempts write into."""

    store: Store
    folder: Path
    params: dict[str, Any]
    every: int = 5
    job_id: str = JOB
    launches: int = 0

    @property
    def ledger(self) -> Ledger:
        """The ledger, read anew."""
        return ledger_of(self.store)

    @property
    def events(self) -> list[Event]:
        """Everything that happened to the job."""
        return self.ledger.events(self.job_id)

    def of(self, kind: Kind) -> list[Event]:
        """What happened of one kind."""
        return [event for event in self.events if event.kind is kind]

    def job(self) -> TrainingJob:
        """What the ledger is told."""
        trees = {name: self.store.trees.put(self.folder / name) for name in ("base_model", "split")}
        params, key = params_digest(self.params), of_bytes(self.job_id.encode())
        return TrainingJob(
            self.job_id, "run", "tiny", "2026-W41", key, key, trees, params, params, Checkpoints(steps=self.every)
        )

    def launch(self, hear: Hear = lambda done, total, note: None) -> Digest:
        """Make one attempt and return the tree of its output."""
        self.launches += 1
        out = self.folder / f"{self.job_id}-{self.launches}"
        out.mkdir()
        inputs = {name: self.folder / name for name in ("base_model", "split")}
        with LedgerJournal(self.store, self.job) as journal:
            SubprocessLauncher(journal=journal).launch(WorkerRequest(MODULE, inputs, self.params, out), hear)
            output = self.store.trees.put(out)
            journal.completed(output, {})
        return output


def training_world(store: Store, folder: Path, *, every: int = 5, job_id: str = JOB, **train: Any) -> TrainingWorld:
    """Build a world whose training takes `train` for settings."""
    if not (folder / "base_model").exists():
        build_tiny_bert(folder / "base_model")
        build_tiny_split(folder / "split")
    return TrainingWorld(store, folder, tiny_train_params(folder / "base_model", **train), every, job_id)


def workers(parent: int | None = None) -> list[int]:
    """Return the process ids of a process's training workers; of this one unless another is given."""
    found = []
    for task in Path("/proc", str(parent or "self"), "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread, or a child, has just ended
            for pid in (task / "children").read_text().split():
                if MODULE.encode() in Path("/proc", pid, "cmdline").read_bytes():
                    found.append(int(pid))
    return found


def signal_at(step: int, number: signal.Signals) -> Hear:
    """Return a listener that sends the worker a signal once it has made a step."""
    sent: list[int] = []

    def hear(done: int, total: int, note: str) -> None:
        if done >= step and not sent:
            sent.extend(workers())
            for pid in sent:
                os.kill(pid, number)

    return hear
