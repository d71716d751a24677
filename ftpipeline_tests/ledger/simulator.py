"""A fleet of jobs that knows what is true of each of them after each of its events, without reading any event."""

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ftpipeline.digest import Digest
from ftpipeline.ledger.events import Draft, Event, Kind, next_events
from ftpipeline_tests.ledger.chains import NOON
from ftpipeline_tests.ledger.world import opened, point, saved
from ftpipeline_tests.store.rows import digest


@dataclass
class Truth:
    """What is true of a job: its training state, what it saved, by (attempt, step), and what it consumed."""

    is_open: bool = True
    attempt: int = 0
    step: int = 0
    keep: int | None = None
    resumed: Digest | None = None
    loss: float | None = None
    score: float | None = None
    saved: dict[tuple[int, int], Digest] = field(default_factory=dict)
    consumed: list[tuple[str, int, int, Digest]] = field(default_factory=list)


@dataclass
class Fleet:
    """Jobs that train, save, consume, end and start again, as chance has it.

    Attributes:
        chains: the events of each job.
        truths: of each job, what was true after each of its events.
    """

    random: Random
    chains: dict[str, list[Event]] = field(default_factory=dict)
    truths: dict[str, list[Truth]] = field(default_factory=dict)

    def act(self) -> None:
        """Let one job do one thing."""
        job_id = f"job-{self.random.randrange(5)}"
        if job_id not in self.chains or not self.truths[job_id][-1].is_open:
            return self._open(job_id)
        act = self.random.choice([self._train, self._train, self._evaluate, self._save, self._save, self._consume])
        (self._close if self.random.random() < 0.1 else act)(job_id)

    def _write(self, job_id: str, truth: Truth, draft: Draft) -> None:
        chain = self.chains.setdefault(job_id, [])
        head = (chain[-1].seq, chain[-1].digest) if chain else None
        attempt = chain[-1].attempt if chain else 0
        chain += next_events(job_id, attempt, head, [draft], NOON)
        self.truths.setdefault(job_id, []).append(truth)

    def _now(self, job_id: str) -> Truth:
        return deepcopy(self.truths[job_id][-1])

    def _open(self, job_id: str) -> None:
        truth = self._now(job_id) if job_id in self.truths else Truth()
        truth.is_open, truth.attempt, truth.step, truth.loss, truth.score = True, truth.attempt + 1, 0, None, None
        truth.keep, truth.resumed = self.random.choice([None, 1, 2]), None
        resumed = None
        if truth.saved and self.random.random() < 0.5:
            (attempt, truth.step), truth.resumed = self.random.choice(list(truth.saved.items()))
            resumed = {"attempt": attempt, "step": truth.step, "tree": truth.resumed}
        payload = opened(holder="me", keep=truth.keep, resumed_from=resumed)
        self._write(job_id, truth, Draft(Kind.JOB_OPENED, truth.step, 0.0, payload))

    def _train(self, job_id: str) -> None:
        truth = self._now(job_id)
        steps = range(truth.step + 1, truth.step + 1 + self.random.randint(1, 4))
        truth.step, truth.loss = steps[-1], self.random.random()
        points: list[dict[str, Any]] = [point(step, truth.loss) for step in steps]
        self._write(job_id, truth, Draft(Kind.METRICS, truth.step, truth.step / 100, {"points": points}))

    def _evaluate(self, job_id: str) -> None:
        truth = self._now(job_id)
        truth.score = self.random.random()
        self._write(job_id, truth, Draft(Kind.EVALUATION, truth.step, truth.step / 100, {"val_loss": truth.score}))

    def _save(self, job_id: str) -> None:
        truth = self._now(job_id)
        truth.step += 1
        tree = digest(f"{job_id} {truth.attempt} {truth.step}")
        truth.saved[truth.attempt, truth.step] = tree
        self._write(job_id, truth, saved(truth.step, tree))

    def _consume(self, job_id: str) -> None:
        others = [(producer, event) for producer in sorted(self.chains) for event in self.chains[producer]]
        savings = [(producer, event) for producer, event in others if event.kind is Kind.CHECKPOINT_SAVED]
        if not savings:
            return
        producer, event = self.random.choice(savings)
        truth = self._now(job_id)
        tree = event.payload["tree"]
        truth.consumed.append((producer, event.attempt, event.step, tree))
        payload = {
            "producer": producer,
            "producer_attempt": event.attempt,
            "producer_step": event.step,
            "producer_event": event.digest,
            "tree": tree,
            "use": "merge",
            "at_step": truth.step,
        }
        self._write(job_id, truth, Draft(Kind.CHECKPOINT_CONSUMED, truth.step, 0.0, payload))

    def _close(self, job_id: str) -> None:
        truth = self._now(job_id)
        truth.is_open = False
        payload = {"reason": "completed", "output": None, "error": None}
        self._write(job_id, truth, Draft(Kind.JOB_CLOSED, truth.step, 0.0, payload))
