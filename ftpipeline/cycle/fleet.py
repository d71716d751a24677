"""The fleet as a trace looks at it: jobs, artifacts that jobs made, and who consumed what, by ledger and store.

What the record does not prove counts against it: a consumption that names an event which its producer's chain lacks
makes that chain unverifiable.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.errors import ChainError
from ftpipeline.guard.lineage import START, Chain, Edge, EdgeKind, Job, Position
from ftpipeline.ledger.events import Event, Kind
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.ledger.rows import JobHead
from ftpipeline.registry.provenance import origins
from ftpipeline.store.opened import Store


@dataclass(frozen=True)
class Saved:
    """A checkpoint that a job saved.

    Attributes:
        at: when, by the job's clock.
        tree: its digest.
        event: the event that says so.
    """

    at: Position
    tree: Digest
    event: Digest


@dataclass(frozen=True)
class Told:
    """What a job's chain tells.

    Attributes:
        saved: its checkpoints, oldest first.
        outputs: what its attempts ended with, and when by its clock.
        consumed: its consumptions of checkpoints and artifacts.
    """

    saved: Sequence[Saved]
    outputs: Sequence[tuple[Position, Digest]]
    consumed: Sequence[Event]

    @property
    def made_something(self) -> bool:
        """Whether there is anything that another job could have consumed."""
        return bool(self.saved or self.outputs)


@dataclass(frozen=True)
class Fleet:
    """Every job of the ledger at one time, but replays: those make nothing, and what they read they read on purpose.

    Attributes:
        jobs: jobs, and artifacts that jobs made.
        edges: consumptions.
        heads: where each job stood.
        told: what the chains that can be trusted tell, by job.
        cut: the heads of the chains that can be trusted, and the root of the concurrent_jobs_manifest that they give.
    """

    jobs: tuple[Job, ...]
    edges: tuple[Edge, ...]
    heads: Mapping[str, JobHead]
    told: Mapping[str, Told]
    cut: Mapping[str, Any]

    def chain(self, job_id: str) -> Chain:
        """Return what is known of a job's chain."""
        return next((job.chain for job in self.jobs if job.job_id == job_id), Chain.MISSING)

    def tree(self, job_id: str, at: Position | None) -> Digest | None:
        """Return the checkpoint that a job saved at a position; None if it saved none."""
        saved = self.told[job_id].saved if job_id in self.told else ()
        return next((one.tree for one in saved if one.at == at), None)


@dataclass
class _Record:
    """What is gathered of the consumptions."""

    edges: list[Edge] = field(default_factory=list)
    external: dict[str, set[str]] = field(default_factory=dict)
    artifacts: set[Digest] = field(default_factory=set)
    unproven: set[str] = field(default_factory=set)


def fleet_of(store: Store, ledger: Ledger, marked_by: Digest | None = None) -> Fleet:
    """Return the fleet as it stands.

    Args:
        store: tells which checkpoints are retained: present, and under no quarantine.
        ledger: holds the chains.
        marked_by: a receipt whose marks do not count, so that an isolation that was cut short plans as it did before.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    heads = {head.job_id: head for head in ledger.jobs()}
    chains, told = _read(ledger, heads)
    for job_id in [job_id for job_id, each in told.items() if heads[job_id].is_replay and not each.made_something]:
        del heads[job_id], chains[job_id], told[job_id]  # no taint leads on from it
    record = _record(store, told)
    for job_id in record.unproven & chains.keys():
        chains[job_id] = Chain.UNVERIFIABLE
    marked = _marked(store, marked_by)
    jobs = [
        Job(
            job_id=job_id,
            checkpoints=_retained(store, told[job_id].saved, marked) if job_id in told else (),
            chain=chains[job_id],
            running=head.is_open,
            external=frozenset(record.external.get(job_id, ())),
        )
        for job_id, head in heads.items()
    ]
    artifacts = [Job(tree, is_artifact=True) for tree in sorted(record.artifacts)]
    edges = tuple(dict.fromkeys(record.edges))
    cut = cut_of(ledger, {job_id: heads[job_id].digest for job_id in told})
    return Fleet((*jobs, *artifacts), edges, heads, told, cut)


def cut_of(ledger: Ledger, heads: Mapping[str, Digest]) -> dict[str, Any]:
    """Return a cut as receipts hold it: the heads, and the root of the concurrent_jobs_manifest that they give."""
    manifest = ledger.manifest(heads)
    return {"root": manifest["root"], "heads": manifest["cut"]}


def _read(ledger: Ledger, job_ids: Iterable[str]) -> tuple[dict[str, Chain], dict[str, Told]]:
    """Return what is known of each chain, and what those tell that can be trusted."""
    chains: dict[str, Chain] = {}
    told: dict[str, Told] = {}
    for job_id in job_ids:
        try:
            ledger.verify(job_id)
            told[job_id] = _told(ledger, job_id)
            chains[job_id] = Chain.VERIFIED
        except ChainError as error:
            chains[job_id] = Chain(error.state)
    return chains, told


def _told(ledger: Ledger, job_id: str) -> Told:
    closed = [event for event in ledger.events(job_id, kinds=[Kind.JOB_CLOSED]) if event.payload["output"] is not None]
    return Told(
        saved=[
            Saved(Position(event.attempt, event.step), digest.parse(event.payload["tree"]), event.digest)
            for event in ledger.checkpoints(job_id)
        ],
        outputs=[(Position(event.attempt, event.step), digest.parse(event.payload["output"])) for event in closed],
        consumed=ledger.consumptions([job_id]),
    )


def _marked(store: Store, but_by: Digest | None) -> set[Digest]:
    marks = store.quarantine.marks()
    return {mark.digest for mark in marks if mark.lifted is None and mark.receipt != but_by}


def _retained(store: Store, saved: Iterable[Saved], marked: set[Digest]) -> tuple[Position, ...]:
    kept = [one for one in saved if one.tree not in marked and store.trees.is_present(one.tree)]
    return tuple(sorted({one.at for one in kept}))


def _record(store: Store, told: Mapping[str, Told]) -> _Record:
    record = _Record()
    consumed = [event for each in told.values() for event in each.consumed]
    artifacts = [event for event in consumed if event.kind is Kind.ARTIFACT_CONSUMED]
    makers = _makers(store, artifacts, told)
    for event in artifacts:
        _artifact(record, event, makers[event.payload["tree"]], told)
    for event in consumed:
        if event.kind is Kind.CHECKPOINT_CONSUMED:
            _checkpoint(record, event, told)
    return record


def _checkpoint(record: _Record, event: Event, told: Mapping[str, Told]) -> None:
    named = event.payload
    producer, made = named["producer"], Position(named["producer_attempt"], named["producer_step"])
    read = Position(event.attempt, named["at_step"])
    record.edges.append(Edge(producer, made, event.job_id, read, EdgeKind.WEIGHTS))
    claimed = Saved(made, digest.parse(named["tree"]), digest.parse(named["producer_event"]))
    if producer in told and claimed not in told[producer].saved:
        record.unproven.add(producer)


def _artifact(record: _Record, event: Event, makers: Collection[str], told: Mapping[str, Told]) -> None:
    """Add the way from the jobs that an artifact goes back to, through the artifact, to who read it."""
    tree, kind = digest.parse(event.payload["tree"]), EdgeKind(event.payload["kind"])
    if not makers:
        record.external.setdefault(event.job_id, set()).add(tree)
        return
    record.artifacts.add(tree)
    for maker in sorted(makers):
        ended: list[Position | None] = [at for at, _ in told[maker].outputs] if maker in told else []
        record.edges += [Edge(maker, position, tree, START, kind) for position in ended or [None]]
    record.edges.append(Edge(tree, START, event.job_id, Position(event.attempt, 0), kind))


def _makers(store: Store, artifacts: Iterable[Event], told: Mapping[str, Told]) -> dict[Digest, set[str]]:
    """Return, by tree, the jobs that an artifact goes back to: those that a reader names, and those lineage shows."""
    ended: dict[Digest, set[str]] = {}
    for job_id, each in told.items():
        for _, tree in each.outputs:
            ended.setdefault(tree, set()).add(job_id)
    makers: dict[Digest, set[str]] = {}
    for event in artifacts:
        tree, named = digest.parse(event.payload["tree"]), event.payload["maker"]
        if tree not in makers:
            with store.database.read() as connection:
                reached = origins(connection, tree)
            makers[tree] = {job_id for each in reached for job_id in ended.get(each, ())}
        makers[tree] |= set() if named is None else {named["job_id"]}
    return makers
