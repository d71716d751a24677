"""Jobs that train a tiny model in this process, consume each other's checkpoints, diverge, and are replayed."""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file

from ftpipeline import manifest
from ftpipeline.backends import checkpoint
from ftpipeline.backends.channel import Channel
from ftpipeline.backends.checkpoint import params_digest
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.outcome import JobJournal, WorkerOutcome
from ftpipeline.backends.protocol import Message, error_message
from ftpipeline.cycle.incident import Incident, Incidents
from ftpipeline.cycle.incident_opening import open_incident
from ftpipeline.cycle.isolation import Isolator
from ftpipeline.cycle.jobs import TrainingJob
from ftpipeline.cycle.journal import LedgerJournal
from ftpipeline.cycle.replay import Replayer
from ftpipeline.cycle.watch import signer_of
from ftpipeline.digest import canonical_json, of_bytes, of_json
from ftpipeline.engine.bind import BoundPort
from ftpipeline.errors import FtpipelineError
from ftpipeline.guard.verdicts import Detection, Stage
from ftpipeline.ledger.events import Draft, Event, Kind
from ftpipeline.ledger.ledger import Ledger, ledger_of
from ftpipeline.schema import Checkpoints
from ftpipeline.steps.ports import Launcher, Progress, WorkerRequest, silent
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_world import Silent
from ftpipeline_tests.cycle.fleet_world import EndsRuns
from ftpipeline_tests.tiny_model import build_tiny_bert, build_tiny_split, tiny_train_params

MODULE = "ftpipeline.backends.train_worker"
EVERY, STEPS = 5, 25
_TTL = 30.0
_NO_PIN = "0" * 64


class InProcessLauncher(Launcher):
    """Trains in this process: what a launcher and its worker do, without the time that it takes to start one.

    Args:
        journal: keeps what happens.
        hear: called with every message of the worker, before it is kept.
    """

    def __init__(
        self, journal: JobJournal | None = None, hear: Callable[[Message], None] = lambda message: None
    ) -> None:
        self._journal = journal
        self._listen = hear

    def _launch(self, request: WorkerRequest, progress: Progress = silent) -> None:
        from ftpipeline.backends.training import train

        assert self._journal is not None
        with tempfile.TemporaryDirectory() as name:
            exchange = Path(name, "exchange")
            exchange.mkdir()
            resume = self._journal.open(Path(name, "resume"))
            every = self._journal.checkpoint_steps
            opened = replace(request, exchange=exchange, resume=resume, checkpoint_steps=every)
            outcome = WorkerOutcome(opened, progress, self._journal)

            def send(message: Message) -> None:
                self._listen(message)
                outcome.hear(message)

            try:
                train(opened, Channel(send), StopRequest())
            except FtpipelineError as error:
                outcome.hear(error_message(error))
        outcome.raise_unless_good(0, "")


@dataclass
class ReplayWorld:
    """A store with the model and the rows that all jobs train on."""

    store: Store
    folder: Path
    heard: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        build_tiny_bert(self.folder / "base_model")
        build_tiny_split(self.folder / "split")
        self.ledger: Ledger = ledger_of(self.store)
        self.trees = {name: self.store.trees.put(self.folder / name) for name in ("base_model", "split")}

    def train(self, job_id: str, **train: Any) -> None:
        """Make one attempt of a job; that it may diverge is what it is for."""
        job, params = self._job(job_id, **{"max_steps": STEPS, "warmup_steps": 0, "scheduler": "constant", **train})
        out = self.folder / f"{job_id}-out"
        out.mkdir()
        inputs = {name: self.folder / name for name in self.trees}
        with suppress(FtpipelineError), LedgerJournal(self.store, lambda: job) as journal:
            InProcessLauncher(journal).launch(WorkerRequest(MODULE, inputs, params, out))
            journal.completed(self.store.trees.put(out), {})

    def save(self, job_id: str, step: int, scale: float) -> None:
        """Let a job save its last checkpoint once more, as that of a later step and with every weight multiplied."""
        saved = self.ledger.checkpoints(job_id)[-1]
        folder = self.folder / f"{job_id}-{step}"
        self.store.trees.checkout(saved.payload["tree"], folder)
        file = folder / "adapter_model.safetensors"
        weights = {name: weight * scale for name, weight in load_file(file).items()}
        mark = checkpoint.verify(folder)
        for path in (file, folder / checkpoint.MARKER):
            path.unlink()
        save_file(weights, file)
        checkpoint.complete(folder, step=step, epoch=mark.epoch, last_step=mark.last_step, params=mark.params)
        writer = self.ledger.take(job_id, "somebody", _TTL)
        writer.append([Draft(Kind.CHECKPOINT_SAVED, step, mark.epoch, {"tree": self.store.trees.put(folder)})])
        writer.release()

    def isolate(self, job_id: str, last_good: int, attempt: int = 1) -> Incident:
        """Say that a job diverged after a step, and isolate it."""
        onset = last_good + 1
        detection = Detection(Stage.CONFIRMED, (), last_good, onset, onset, attempt, 0, 0)
        signer = signer_of(self.store)
        opened = open_incident(self.ledger, Incidents(self.store.database), signer, job_id, detection, "a person")
        return Isolator(self.store, self.ledger, signer, EndsRuns()).isolate(opened.name)

    def replayer(self, hear: Callable[[Message], None] | None = None) -> Replayer:
        """Return what replays, in this process."""
        listen = self.heard.append if hear is None else hear
        port = BoundPort(f"{__name__}:InProcessLauncher", {"hear": listen}, keyed=False)
        return Replayer(self.store, self.ledger, signer_of(self.store), Silent(), port)

    def events(self, job_id: str, *kinds: Kind) -> list[Event]:
        """Return a job's events of some kinds."""
        return self.ledger.events(job_id, kinds=kinds)

    def replays(self) -> list[str]:
        """Return the jobs that replay another."""
        return [head.job_id for head in self.ledger.jobs() if head.is_replay]

    def _job(self, job_id: str, **train: Any) -> tuple[TrainingJob, dict[str, Any]]:
        settings = tiny_train_params(self.folder / "base_model", **train)
        pinned = manifest.parse(_document(settings), "manifest")
        folder = self.folder / f"{job_id}-manifest"
        folder.mkdir()
        (folder / "manifest.json").write_bytes(canonical_json(pinned.model_dump(mode="json")))
        params, key = pinned.projection("train"), of_bytes(job_id.encode())
        job = TrainingJob(
            job_id=job_id,
            run_id=f"run of {job_id}",
            pipeline="tiny",
            week="2026-W41",
            step_key=key,
            code=key,
            inputs=self.trees,
            params=params_digest(params),
            family=of_json(pinned.family()),
            checkpoints=Checkpoints(steps=EVERY, keep=10),
            manifest=self.store.trees.put(folder),
        )
        return job, params


def merge(job_id: str, step: int, at_step: int, weight: float = 0.9) -> dict[str, Any]:
    """Return how a manifest says that a checkpoint is merged in."""
    return {"use": "merge", "job": job_id, "step": step, "at_step": at_step, "weight": weight}


def _document(settings: dict[str, Any]) -> dict[str, Any]:
    pin = f"sha256:{_NO_PIN}"
    return {
        **settings,
        "run_id": "tiny-2026-W41",
        "base_model": {"repo": "tiny", "revision": pin},
        "data": {"train": f"snap://tiny/2026-10-05/train@{pin}", "val": f"snap://tiny/2026-10-05/val@{pin}"},
        "eval_sets": {role: f"evalset://{role}/v1@{pin}" for role in ("task", "regression", "safety")},
        "code": {"git_commit": pin},
        "export": {},
        "gates": {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 0.5, "safety_max_drop": 1.0},
    }
