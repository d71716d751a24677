"""A training as a job of the ledger: the computation of one train step key, over all of its attempts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ftpipeline import digest
from ftpipeline.backends.checkpoint import params_digest
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.data import week_of
from ftpipeline.digest import Digest, hex_of
from ftpipeline.engine.identity import identify
from ftpipeline.engine.runner import Call
from ftpipeline.ledger.events import Draft, Kind
from ftpipeline.ledger.ledger import Ledger
from ftpipeline.manifest import Manifest
from ftpipeline.records import RunContext
from ftpipeline.schema import Checkpoints
from ftpipeline.store.results import StepResults
from ftpipeline.weeks import iso_name

_NAME_LENGTH, _KEY_LENGTH = 57, 12  # so that the id can be the name of a file
_WEIGHTS, _DATA, _EVAL = "weights", "data", "eval"


@dataclass(frozen=True)
class TrainingJob:
    """What the ledger is told of a training when it opens.

    Attributes:
        job_id: the same for every attempt, in every run.
        run_id: the run that trains.
        pipeline: the pipeline's name.
        week: ISO week, as `2026-W40`.
        step_key: key of the train step.
        code: code fingerprint of the train step.
        inputs: input name to tree.
        params: digest of the training's parameters.
        family: digest of the manifest's family.
        checkpoints: how often it is saved, and how many are kept.
        manifest: what it is trained under; None where nobody wrote one.
    """

    job_id: str
    run_id: str
    pipeline: str
    week: str
    step_key: Digest
    code: Digest
    inputs: Mapping[str, Digest]
    params: Digest
    family: Digest
    checkpoints: Checkpoints
    manifest: Digest | None = None

    def opening(self, resumed_from: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the payload of the event that begins an attempt; the ledger fills in the holder."""
        return {
            "run_id": self.run_id,
            "pipeline": self.pipeline,
            "week": self.week,
            "step_key": self.step_key,
            "inputs": dict(self.inputs),
            "params_digest": self.params,
            "family": self.family,
            "checkpoint_steps": self.checkpoints.steps,
            "keep": self.checkpoints.keep,
            "manifest": self.manifest,
            "resumed_from": resumed_from,
            "code": self.code,
        }


def training_job(cycle: Cycle, run: RunContext, call: Call, manifest: Manifest) -> TrainingJob:
    """Return the job of a call of the train step."""
    identity = identify(call.bound, cycle.cache)
    key, week = call.key(identity), iso_name(week_of(run))
    return TrainingJob(
        job_id=f"{cycle.pipeline.name[:_NAME_LENGTH]}-{week}-{hex_of(key)[:_KEY_LENGTH]}",
        run_id=run.run_id,
        pipeline=cycle.pipeline.name,
        week=week,
        step_key=key,
        code=identity.code,
        inputs=call.inputs,
        params=params_digest(call.params),
        family=digest.of_json(manifest.family()),
        checkpoints=cycle.pipeline.file.checkpoints,
        manifest=call.manifest,
    )


def consumed_inputs(job: TrainingJob, ledger: Ledger, results: StepResults, step: int, epoch: float) -> list[Draft]:
    """Return the events that say which inputs a job reads, each with the job that made it, if one did."""
    drafts = []
    for name, tree in sorted(job.inputs.items()):
        maker = _maker(tree, ledger, results)
        payload = {
            "name": name,
            "tree": tree,
            "maker": None if maker is None else {"job_id": maker},
            "kind": _WEIGHTS if name == "base_model" else _EVAL if name.startswith("eval_") else _DATA,
        }
        drafts.append(Draft(Kind.ARTIFACT_CONSUMED, step, epoch, payload))
    return drafts


def _maker(tree: Digest, ledger: Ledger, results: StepResults) -> str | None:
    """Return the nearest job that made a tree, or something that it was made from."""
    waiting, seen = [tree], set[Digest]()
    while waiting:
        found = waiting.pop(0)
        if found in seen:
            continue
        seen.add(found)
        if (maker := ledger.maker(found)) is not None:
            return maker
        waiting += [made for record in results.made(found) for made in record.inputs.values()]
    return None
