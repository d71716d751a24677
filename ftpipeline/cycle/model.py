"""The stages that make the model: manifest, train, export."""

import platform
from dataclasses import replace
from typing import Any

from ftpipeline import digest, manifest
from ftpipeline.cycle import bindings
from ftpipeline.cycle.code_identity import code_identity
from ftpipeline.cycle.consumed_jobs import pinned as pinned_jobs
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.data import Inputs, week_of
from ftpipeline.cycle.floors import check_gates
from ftpipeline.cycle.jobs import training_job
from ftpipeline.cycle.journal import LedgerJournal
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.identity import identify
from ftpipeline.engine.runner import Call
from ftpipeline.errors import BaseModelMismatchError
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.manifest import Manifest
from ftpipeline.pipeline import PipelineFile
from ftpipeline.records import RunContext, StepResult
from ftpipeline.steps.manifest import FILE
from ftpipeline.weeks import iso_name


def write_manifest(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Pin everything the week's model is made from, before it is trained.

    Raises:
        ThresholdError: the gates demand a gain that no evaluation could tell from noise.
        ManifestError: a value cannot stand in a manifest.
    """
    pinned = build_manifest(cycle, run, inputs)
    check_gates(cycle, pinned, inputs)
    return cycle.run(Call(bindings.MANIFEST, {}, {"manifest": pinned.model_dump(mode="json")}), run)


def build_manifest(cycle: Cycle, run: RunContext, inputs: Inputs) -> Manifest:
    """Return the manifest of a week from the pipeline file and the digests of what was made so far.

    Raises:
        ManifestError: a value cannot stand in a manifest.
        UnknownNameError: a checkpoint is to be consumed of a job that never opened.
    """
    file, labels = cycle.pipeline.file, list(cycle.pipeline.labels)
    document = {
        "run_id": f"{cycle.pipeline.name}-{iso_name(week_of(run))}",
        "labels": labels,
        **_base_model(cycle, inputs["base_model"]),
        "data": _data(cycle, run, inputs["split"]),
        "eval_sets": {
            role: f"evalset://{declared.name}/{declared.version}@{inputs[f'eval_{role}']}"
            for role, declared in file.eval_sets.by_role().items()
        },
        "code": code_identity(cycle.pipeline.path.parent).model_dump(),
        "environment": _environment(cycle),
        **file.model_dump(mode="json", include={"task", "export", "abstention", "evaluation", "gates"}),
        "train": _train(cycle, run),
    }
    return manifest.parse(document, f"manifest of {cycle.pipeline.name} {run.week}")


def _base_model(cycle: Cycle, tree: Digest) -> dict[str, Any]:
    declared = cycle.pipeline.file.base_model
    facts = cycle.facts_of("base_model", tree)
    pin = {"repo": declared.source, "revision": declared.revision or tree, "tree_sha256": tree}
    return {"base_model": pin, "tokenizer_sha256": facts["tokenizer_sha256"]}


def _train(cycle: Cycle, run: RunContext) -> dict[str, Any]:
    declared = cycle.pipeline.file.train
    consumes = pinned_jobs(declared.consumes, ledger_of(cycle.store), iso_name(week_of(run)))
    return declared.model_copy(update={"consumes": consumes}).model_dump(mode="json")


def _data(cycle: Cycle, run: RunContext, split: Digest) -> dict[str, str]:
    files = {entry.path: entry.sha256 for entry in cycle.store.trees.entries(split)}
    place = f"snap://{cycle.pipeline.name}/{run.week}"
    return {
        "train": f"{place}/train@{files['train.parquet']}",
        "val": f"{place}/val@{files['validation.parquet']}",
    }


def _environment(cycle: Cycle) -> dict[str, Any]:
    steps = (bindings.bound_train(cycle.launcher), _bound_export(cycle.pipeline.file))
    libraries = {name: version for step in steps for name, version in identify(step, cycle.cache).libraries.items()}
    return {"launcher": "subprocess", "python": platform.python_version(), "distributions": libraries}


def _bound_export(declared: PipelineFile | Manifest) -> BoundStep:
    return bindings.bound_export(declared.task, declared.export.merge_adapter)


def load_manifest(cycle: Cycle, tree: Digest) -> Manifest:
    """Return a stored manifest."""
    return manifest.parse(digest.parse_json(cycle.store.trees.read(tree, FILE)), f"manifest {tree}")


def train(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Train the adapter in its worker, keyed by the training projection of the manifest and the data.

    A training is a job of the ledger: what it measures, saves and reads is written there, and one that was cut short
    goes on from its newest checkpoint.

    Raises:
        BaseModelMismatchError: the base model is not the one that the manifest pins.
        JobHaltedError: the job is under quarantine, or its ledger does not verify.
        LeaseLostError: another process trains the job.
    """
    pinned = load_manifest(cycle, inputs["manifest"])
    _check_base(pinned, inputs["base_model"])
    trees = {"split": inputs["split"], "base_model": inputs["base_model"]}
    if pinned.train.evaluation_steps is not None:
        trees["eval_regression"] = inputs["eval_regression"]
    bound = bindings.bound_train(cycle.launcher)
    call = Call(bound, trees, pinned.projection("train"), inputs["manifest"])
    with LedgerJournal(cycle.store, lambda: training_job(cycle, run, call, pinned)) as journal:
        launcher = replace(cycle.launcher, arguments={**cycle.launcher.arguments, "journal": journal})
        return cycle.run(replace(call, bound=bindings.bound_train(launcher), check=journal.completed), run)


def _check_base(pinned: Manifest, tree: Digest) -> None:
    if pinned.base_model.tree_sha256 != tree:
        raise BaseModelMismatchError(
            f"base model is {tree}, the manifest pins {pinned.base_model.tree_sha256}; run the stage manifest again"
        )


def export(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Merge, quantise and calibrate the served artifact."""
    pinned = load_manifest(cycle, inputs["manifest"])
    _check_base(pinned, inputs["base_model"])
    trees = {"adapter": inputs["train"], "base_model": inputs["base_model"], "split": inputs["split"]}
    return cycle.run(Call(_bound_export(pinned), trees, pinned.projection("export"), inputs["manifest"]), run)
