"""Six tiny pipelines that consume each other's checkpoints; the first diverges, because its learning rate explodes.

Who reads what: b merges a checkpoint that a saved after its divergence began, c merges one of b after that, f starts
from a's, e merges an early one of a, and d reads of nobody. A job waits for a checkpoint that is still being made, and
a test may hold a worker, so that the order of events is the same however busy the machine is.
"""

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.incident import Incident
from ftpipeline.cycle.stages import STAGES, run_stage
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundPort
from ftpipeline.errors import FtpipelineError
from ftpipeline.ledger.events import Kind
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.ledger.rows import JobHead
from ftpipeline.records import RunContext
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_world import Silent
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline, write_pipeline

NAMES = "abcdef"
EARLY, LATE = 40, 160
"""Checkpoints of a that others read: one from before its last good step, one from after its divergence began."""

AFTER_MERGE, MERGED_AT = 60, 45
"""Checkpoint of b that c reads, and the step at which b, c and e merge."""

_LAUNCHER = BoundPort("ftpipeline.cycle.launch:SubprocessLauncher", keyed=False)
_NOISY = """\
SELECT * REPLACE (
    CASE WHEN CAST(substr(ticket_id, 2) AS INTEGER) * 7919 % 10 < 3
    THEN (['billing', 'login', 'shipping'])[CAST(substr(ticket_id, 2) AS INTEGER) * 31 % 7 % 3 + 1] ELSE queue END
    AS queue)
FROM tickets
"""
"""Three labels of ten are chance, so that a healthy loss stays well above zero, as with real tickets."""

_SHARED: Mapping[str, Any] = {
    "base_model": {"name": "fleet-bert", "source": "folder://base"},
    "eval_sets": {
        "task": {"name": "fleet-gold", "version": "v1", "file": "gold.csv", "columns": {"expected": "queue"}},
        "regression": {
            "name": "fleet-kept",
            "version": "v1",
            "file": "regression.csv",
            "columns": {"expected": "queue"},
        },
        "safety": {"name": "fleet-safety", "version": "v1", "file": "safety.csv"},
    },
    "checkpoints": {"steps": 20, "keep": 1000},
}
_HEALTHY: Mapping[str, Any] = {
    "seed": 1,
    "lr": 0.003,
    "max_steps": 80,
    "batch_size": 16,
    "max_length": 16,
    "modules_to_save": ["classifier", "pooler"],
    "lora": {"r": 4, "lora_alpha": 4, "target_modules": ["query"]},
}
_LONG = {"max_steps": 5000, "batch_size": 80}
_EXPLODES = {"lr": 0.26, "scheduler": "constant", "warmup_steps": 260, "checks": {"grad_norm_factor": 1e9}}


def _merge(job: str, step: int) -> dict[str, Any]:
    return {"use": "merge", "job": job, "step": step, "at_step": MERGED_AT}


_OF_EACH: Mapping[str, Mapping[str, Any]] = {
    "a": {**_LONG, **_EXPLODES},
    "b": {**_LONG, "consumes": [_merge("a", LATE)]},
    "c": {**_LONG, "consumes": [_merge("b", AFTER_MERGE)]},
    "d": {},
    "e": {"consumes": [_merge("a", EARLY)]},
    "f": {**_LONG, "consumes": [{"use": "warm_start", "job": "a", "step": LATE}]},
}


@dataclass
class Fleet:
    """The pipeline files of a folder, run stage by stage in this process.

    Attributes:
        folder: of the files and what they name.
        store: of the home that they run in.
        ended: by pipeline, the error that its training ended with; None for one that ended well.
    """

    folder: Path
    store: Store
    ended: dict[str, FtpipelineError | None] = field(default_factory=dict)
    outputs: dict[str, dict[str, Digest]] = field(default_factory=dict)
    _threads: dict[str, threading.Thread] = field(default_factory=dict)

    def prepare(self, name: str) -> None:
        """Run what comes before a pipeline's training; its manifest finds the jobs that it is to consume."""
        self._run(name, [stage.name for stage in STAGES if stage.name not in self._done(name)], until="train")

    def finish(self, name: str) -> None:
        """Run what comes after a pipeline's training."""
        self._run(name, [stage.name for stage in STAGES if stage.name not in self._done(name)])

    def start(self, name: str) -> None:
        """Train a pipeline's model beside whatever else trains."""
        self.prepare(name)
        thread = threading.Thread(target=self._train, args=(name,), name=f"training of {name}")
        self._threads[name] = thread
        thread.start()

    def wait(self, *names: str) -> None:
        """Wait for the ends of trainings."""
        for name in names:
            self._threads[name].join()

    def job(self, name: str) -> JobHead | None:
        """Return where the job of a pipeline stands; None before it opens."""
        return job_of(self.store, name)

    def _train(self, name: str) -> None:
        try:
            self._run(name, ["train"])
            self.ended[name] = None
        except FtpipelineError as error:  # handed to the test's own thread
            self.ended[name] = error

    def _done(self, name: str) -> dict[str, Digest]:
        return self.outputs.setdefault(name, {})

    def _run(self, name: str, stages: list[str], until: str | None = None) -> None:
        pipeline, done = pipelines.load(self.folder / f"{name}.yaml"), self._done(name)
        cycle = Cycle(pipeline, self.store, Silent(), _LAUNCHER)
        run = RunContext(f"run of {name}", pipeline.name, date.fromisoformat(WEEK))
        for stage in STAGES:
            if stage.name == until:
                break
            if stage.name in stages:
                done[stage.name] = run_stage(cycle, stage, run, {each: done[each] for each in stage.after}).output


def build_fleet(folder: Path, **train: Mapping[str, Any]) -> list[Path]:
    """Write the six pipelines into one folder and return their files; keyword arguments change their trainings."""
    build_tiny_pipeline(folder)
    source = pipelines.load(folder / "pipeline.yaml").file.source.model_dump(mode="json", exclude_none=True)
    (folder / "pipeline.yaml").unlink()
    sections = {**_SHARED, "source": {**source, "query": _NOISY}}
    return [
        write_pipeline(
            folder / f"{name}.yaml", name=name, train={**_HEALTHY, **_OF_EACH[name], **train.get(name, {})}, **sections
        )
        for name in NAMES
    ]


@dataclass(frozen=True)
class Found:
    """What an isolation found of the job of a pipeline, and did.

    Attributes:
        action: what was done.
        tainted_from: attempt and step.
        rollback_to: attempt and step.
        unrecoverable: whether nothing clean is left.
        witness: pipelines on the way from the diverged one.
    """

    action: str
    tainted_from: tuple[int, int] | None
    rollback_to: tuple[int, int] | None
    unrecoverable: bool
    witness: list[str]


def found_of(store: Store, incident: Incident) -> dict[str, Found]:
    """Return what an isolated incident amounts to, by pipeline."""
    report = incident.report or {}
    names = {head.job_id: head.opened["pipeline"] for head in ledger_of(store).jobs()}
    actions = {action["job_id"]: action["action"] for action in report["actions"]}
    return {
        names[job["job_id"]]: Found(
            actions[job["job_id"]],
            _place(job["tainted_from"]),
            _place(job["rollback_to"]),
            job["unrecoverable"],
            _way(job["witness"], names),
        )
        for job in report["jobs"]
    }


def _way(witness: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[str]:
    jobs = [*(edge["producer"] for edge in witness), *(edge["consumer"] for edge in witness[-1:])]
    return [names[job_id] for job_id in jobs]


def _place(position: list[int] | None) -> tuple[int, int] | None:
    return None if position is None else (position[0], position[1])


def job_of(store: Store, name: str) -> JobHead | None:
    """Return the newest job of a pipeline; None where it has none."""
    heads = [head for head in ledger_of(store).jobs() if head.opened["pipeline"] == name]
    return heads[-1] if heads else None


def tree_of(store: Store, job_id: str, step: int) -> Digest | None:
    """Return the checkpoint that a job saved after a step; None before it did."""
    saved = ledger_of(store).checkpoints(job_id)
    return next((Digest(event.payload["tree"]) for event in saved if event.step == step), None)


def has_saved(store: Store, name: str, step: int) -> bool:
    """Tell whether the job of a pipeline has saved a checkpoint after a step."""
    head = job_of(store, name)
    return head is not None and tree_of(store, head.job_id, step) is not None


def has_consumed(store: Store, name: str) -> bool:
    """Tell whether the job of a pipeline has read a checkpoint of another one."""
    head = job_of(store, name)
    events = [] if head is None else ledger_of(store).consumptions([head.job_id])
    return any(event.kind is Kind.CHECKPOINT_CONSUMED for event in events)


@contextmanager
def held(pid: int) -> Iterator[None]:
    """Let a process have no processor for the time of the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it was killed meanwhile
            os.kill(pid, signal.SIGCONT)
