"""Replays a job that an incident exposed: as recorded, with its producer's last clean checkpoint, and without it.

Each arm is trained under several seeds, the same in every arm, one after another. A replay is a step like a training,
keyed and memoised: one that was made is reused, and replaying that was cut short goes on with the ones that are left.
It is a job of the ledger of its own, and what it trains is thrown away (`ftpipeline.cycle.replay_journal`); no pointer,
stage or registry entry ever names it.

The recorded run itself is no observation of any arm: with its own seed and generators it would come out as it did,
and what is asked is whether the divergence depends on what was read, not on that one order of the data. So the arm as
recorded, too, is trained anew, from the very checkpoints that were read, under quarantine or not.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ftpipeline.backends.checkpoint import params_digest
from ftpipeline.cycle import bindings
from ftpipeline.cycle.attributions import ACTION, attributions
from ftpipeline.cycle.counterfactual import Case, case_of
from ftpipeline.cycle.detector_states import DetectorStates
from ftpipeline.cycle.isolation_records import Signer
from ftpipeline.cycle.replay_journal import ReplayJob, ReplayJournal, Source
from ftpipeline.cycle.replay_judge import judge
from ftpipeline.cycle.replay_records import Replay, Replayed
from ftpipeline.digest import Digest, hex_of
from ftpipeline.engine.bind import BoundPort
from ftpipeline.engine.flight import DEFAULT_PACE
from ftpipeline.engine.holder import is_gone, this_process
from ftpipeline.engine.identity import identify
from ftpipeline.engine.runner import Call, Runner
from ftpipeline.errors import InputError, LeaseLostError
from ftpipeline.guard.attribute import LEAST_SEEDS, Arm
from ftpipeline.guard.config import Envelope
from ftpipeline.ledger.events import Draft, Kind
from ftpipeline.ledger.ledger import Ledger, lease_name
from ftpipeline.records import RunContext, StepObserver
from ftpipeline.schema import Consumption
from ftpipeline.steps.ports import REPLAYED
from ftpipeline.store.opened import Store

_ANSWERS = {True: "diverged", False: "did not diverge", None: "undecided"}
_NAME_LENGTH, _KEY_LENGTH = 80, 12  # so that the id can be the name of a file

Told = Callable[[str], None]
"""Hears, line by line, what was replayed."""


class Replayer:
    """Replays jobs of one home."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        signer: Signer,
        observer: StepObserver,
        launcher: BoundPort = bindings.SUBPROCESS_LAUNCHER,
        tell: Told = lambda line: None,
    ) -> None:
        """Prepare replays.

        Args:
            store: where everything is kept.
            ledger: tells what was recorded, and takes the events.
            signer: signs the receipt.
            observer: hears every replay train.
            launcher: starts the workers.
            tell: told of every replay.
        """
        self._store = store
        self._ledger = ledger
        self._signer = signer
        self._observer = observer
        self._launcher = launcher
        self._tell = tell

    def replay(self, job_id: str, run_id: str, seeds: int = LEAST_SEEDS) -> tuple[Replayed, Digest]:
        """Replay a job, sign what that shows and write it into the job's chain.

        Args:
            job_id: the job.
            run_id: the run that replays it.
            seeds: replays of each arm; fewer than three are reported and decide nothing.

        Returns:
            The replays, and the receipt.

        Raises:
            UnknownNameError: there is no such job.
            InputError: it was not exposed or cannot be replayed, or no seed is asked for.
            LeaseLostError: somebody trains the job.
            JobHaltedError: others train, and the record of them cannot be trusted.
            QuarantinedError: its data, or a checkpoint that an arm needs, was put under quarantine meanwhile.
            ChainError: its chain does not verify.
        """
        if seeds < 1:
            raise InputError(f"{seeds} seeds replay nothing; give at least 1, and {LEAST_SEEDS} for an answer")
        self._require_idle(job_id)
        case = case_of(self._store, self._ledger, job_id)
        first, envelope = case.manifest.train.seed + 1, self._envelope(case)
        chosen = [(first + offset) % 2**32 for offset in range(seeds)]
        replays: dict[Arm, list[Replay]] = {}
        for arm, reads in case.arms.items():
            replays[arm] = [self._replay(case, arm, reads, seed, run_id, envelope) for seed in chosen]
        made = Replayed(case, replays)
        return made, self._record(made)

    def _replay(
        self,
        case: Case,
        arm: Arm,
        reads: Mapping[Consumption, Source],
        seed: int,
        run_id: str,
        envelope: Envelope | None,
    ) -> Replay:
        params = _params(case, reads, seed)
        call = Call(bindings.bound_replay(self._launcher), case.job.inputs, params, case.job.manifest)
        identity = identify(call.bound, self._store.home.cache)
        key = call.key(identity)
        job = ReplayJob(
            **{**vars(case.job), "job_id": _name(key, case.job.job_id), "params": params_digest(params)},
            replay_of={"job_id": case.job.job_id, "incident": case.incident.name, "arm": str(arm), "seed": seed},
            start=case.start,
            sources={(each.job, each.step): source for each, source in reads.items()},
        )
        job = replace(job, run_id=run_id, step_key=key, code=identity.code)
        with ReplayJournal(self._store, lambda: job) as journal:
            launcher = replace(self._launcher, arguments={**self._launcher.arguments, "journal": journal})
            call = replace(call, bound=bindings.bound_replay(launcher), check=journal.completed)
            result = Runner(self._store, self._observer).run(call, RunContext(run_id, case.job.pipeline))
        judgement = judge(self._store.trees, result.output, case.opened, envelope)
        self._tell(f"{arm}, seed {seed}: {_ANSWERS[judgement.diverged]} ({result.action}, {job.job_id})")
        return Replay(job.job_id, seed, key, result.output, judgement)

    def _envelope(self, case: Case) -> Envelope | None:
        """Return the bound that the job was judged by, so that its replays are."""
        states = DetectorStates(self._store.database)
        looked = states.of(case.job.job_id)
        return states.envelope(case.job.family) if looked is None else looked.memory.envelope

    def _require_idle(self, job_id: str) -> None:
        """Refuse a job that is trained now, before the replays and not after: its chain is its trainer's."""
        name = lease_name(job_id)
        holder = self._store.leases.held().get(name)
        if holder is not None and not is_gone(holder):
            raise LeaseLostError(f"job {job_id} is trained by {holder}; replay it after its end")
        if holder is not None:
            self._store.leases.disown(name, holder)

    def _record(self, made: Replayed) -> Digest:
        """Sign what the replays show, and write it into the job's chain unless it stands there."""
        job_id, receipt = made.case.job.job_id, self._signer.put(made.statement())
        if any(event.payload["receipt"] == receipt for event in attributions(self._ledger, job_id)):
            return receipt
        self._require_idle(job_id)
        writer = self._ledger.take(job_id, this_process(), DEFAULT_PACE.ttl)
        try:
            head = writer.head
            writer.append([Draft(Kind.ISOLATION_ACTION, head.step, head.epoch, _said(made, receipt))])
        finally:
            writer.release()
        return receipt


def _said(made: Replayed, receipt: Digest) -> dict[str, Any]:
    return {
        "receipt": receipt,
        "incident": made.case.incident.name,
        "action": ACTION,
        "cause": str(made.attribution.cause),
        "outcomes": made.outcomes,
    }


def _params(case: Case, reads: Mapping[Consumption, Source], seed: int) -> dict[str, Any]:
    """Return the parameters of a replay: those of the training, and whatever else the result depends on."""
    params = case.manifest.projection("train")
    consumes = [each.model_dump(mode="json") for each in reads]
    read = [[each.job, each.step, source.tree] for each, source in reads.items()]
    start = None if case.start is None else case.start.tree
    train = {**params["train"], "seed": seed, "consumes": consumes}
    return {**params, "train": train, REPLAYED: {"start": start, "read": read}}


def _name(key: Digest, job_id: str) -> str:
    return f"replay-{hex_of(key)[:_KEY_LENGTH]}-{job_id}"[:_NAME_LENGTH]
