"""What is replayed of a job that an incident exposed: from where on, and what each arm reads instead.

A replay begins at the job's last clean checkpoint before it read anything suspect: whatever an arm changes must still
lie ahead. Where no such checkpoint is left, it begins at the beginning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftpipeline import digest, manifest
from ftpipeline.backends.checkpoint import params_digest
from ftpipeline.cycle.incident import Incident
from ftpipeline.cycle.jobs import TrainingJob
from ftpipeline.cycle.replay_journal import Source
from ftpipeline.cycle.resume import resumable
from ftpipeline.cycle.suspects import Exposures, Suspect
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError
from ftpipeline.guard.attribute import Arm
from ftpipeline.guard.lineage import Position
from ftpipeline.ledger.events import Kind
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.manifest import Manifest
from ftpipeline.schema import Checkpoints, Consumption
from ftpipeline.steps.manifest import FILE
from ftpipeline.store.opened import Store


@dataclass(frozen=True)
class Case:
    """A job that was exposed, and all it takes to train it again.

    Attributes:
        incident: what exposed it.
        opened: payload of the event that began its attempt.
        job: the same, as a job.
        manifest: what it was trained under.
        start: where replays begin; None for the beginning.
        consumed: what it read of other jobs, as the manifest names it.
        suspects: those of them that are in doubt.
    """

    incident: Incident
    opened: Mapping[str, Any]
    job: TrainingJob
    manifest: Manifest
    start: Source | None
    consumed: Mapping[Consumption, Source]
    suspects: Sequence[Suspect]

    @property
    def arms(self) -> dict[Arm, Mapping[Consumption, Source]]:
        """What each arm reads; there is none with clean checkpoints where one of them is missing."""
        clean = {suspect.declared: suspect.clean for suspect in self.suspects}
        rest = {declared: source for declared, source in self.consumed.items() if declared not in clean}
        arms: dict[Arm, Mapping[Consumption, Source]] = {Arm.AS_RECORDED: self.consumed}
        if None not in clean.values():
            instead = [(declared, clean.get(declared) or source) for declared, source in self.consumed.items()]
            arms[Arm.CLEAN_PRODUCER] = {_at(declared, source): source for declared, source in instead}
        return {**arms, Arm.WITHOUT_INPUT: rest}


def _at(declared: Consumption, source: Source) -> Consumption:
    return declared.model_copy(update={"step": source.step})


def case_of(store: Store, ledger: Ledger, job_id: str) -> Case:
    """Return what is to be replayed of a job, by the newest isolated incident that exposes it.

    Raises:
        UnknownNameError: there is no such job.
        InputError: no isolated incident exposes it, it read no checkpoint that could be left out, what it read is not
            kept any more, or its manifest is not known.
        ChainError: the job's chain does not verify.
        LedgerError: the ledger cannot be read.
    """
    ledger.verify(ledger.job(job_id).job_id)
    exposures = Exposures(store, ledger)
    incident, finding = exposures.of(job_id)
    since = Position(*finding["tainted_from"])
    attempt = incident.attempt if incident.job_id == job_id else since.attempt or ledger.job(job_id).attempt
    opened = _opened(ledger, job_id, attempt)
    job = _job(job_id, opened)
    pinned = _manifest(store, job, digest.parse(opened["manifest"]))
    readings = exposures.readings(job_id, pinned.train.consumes, attempt)
    suspects = exposures.suspects(incident, finding, readings)
    if not suspects:
        raise InputError(
            f"job {job_id} read no checkpoint that a replay could leave out; what data or evaluations did to it "
            "cannot be told by replaying it"
        )
    first = min(each.declared.at_step or 0 for each in suspects)
    start = _start(store, ledger, exposures, job, since, first)
    consumed = {each: exposures.source(event) for each, event in readings.items()}
    return Case(incident, opened, job, pinned, start, consumed, suspects)


def _opened(ledger: Ledger, job_id: str, attempt: int) -> Mapping[str, Any]:
    """Return what the ledger was told of an attempt of a job when it began."""
    events = ledger.events(job_id, kinds=[Kind.JOB_OPENED])
    said = next(event.payload for event in events if event.attempt >= attempt)
    if said.get("manifest") is None:
        raise InputError(f"job {job_id} does not say which manifest it was trained under; it cannot be replayed")
    return said


def _job(job_id: str, said: Mapping[str, Any]) -> TrainingJob:
    return TrainingJob(
        job_id=job_id,
        run_id=said["run_id"],
        pipeline=said["pipeline"],
        week=said["week"],
        step_key=digest.parse(said["step_key"]),
        code=digest.parse(said["code"]),
        inputs={name: digest.parse(tree) for name, tree in said["inputs"].items()},
        params=digest.parse(said["params_digest"]),
        family=digest.parse(said["family"]),
        checkpoints=Checkpoints(steps=said["checkpoint_steps"], keep=said["keep"]),
        manifest=digest.parse(said["manifest"]),
    )


def _manifest(store: Store, job: TrainingJob, tree: Digest) -> Manifest:
    pinned = manifest.parse(digest.parse_json(store.trees.read(tree, FILE)), f"manifest {tree}")
    if params_digest(pinned.projection("train")) != job.params:
        raise InputError(f"job {job.job_id} was not trained as its manifest {tree} says; it cannot be replayed")
    return pinned


def _start(
    store: Store, ledger: Ledger, exposures: Exposures, job: TrainingJob, since: Position, first: int
) -> Source | None:
    """Return the job's last checkpoint that is clean, whole, and earlier than the first suspect reading."""
    for saved in resumable(ledger, store.trees, job):
        at, tree = Position(saved.attempt, saved.step), digest.parse(saved.payload["tree"])
        if at < since and at.step < first and not exposures.marks(job.job_id, at, tree):
            return Source(job.job_id, at.attempt, at.step, tree)
    return None
