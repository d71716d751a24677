"""The stages that make the model: manifest, train, export."""

import platform
from typing import Any

from ftpipeline import digest, manifest
from ftpipeline.cycle import bindings
from ftpipeline.cycle.code_identity import code_identity
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.data import Inputs, week_of
from ftpipeline.digest import Digest
from ftpipeline.engine.identity import identify
from ftpipeline.engine.runner import Call
from ftpipeline.manifest import Manifest
from ftpipeline.records import RunContext, StepResult
from ftpipeline.steps.manifest import FILE
from ftpipeline.weeks import iso_name


def write_manifest(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Pin everything the week's model is made from, before it is trained."""
    document = build_manifest(cycle, run, inputs).model_dump(mode="json")
    return cycle.run(Call(bindings.MANIFEST, {}, {"manifest": document}), run)


def build_manifest(cycle: Cycle, run: RunContext, inputs: Inputs) -> Manifest:
    """Return the manifest of a week from the pipeline file and the digests of what was made so far.

    Raises:
        ManifestError: a value cannot stand in a manifest.
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
        **file.model_dump(mode="json", include={"task", "train", "export", "abstention", "evaluation", "gates"}),
    }
    return manifest.parse(document, f"manifest of {cycle.pipeline.name} {run.week}")


def _base_model(cycle: Cycle, tree: Digest) -> dict[str, Any]:
    declared = cycle.pipeline.file.base_model
    facts = cycle.facts_of("base_model", tree)
    pin = {"repo": declared.source, "revision": declared.revision or tree, "tree_sha256": tree}
    return {"base_model": pin, "tokenizer_sha256": facts["tokenizer_sha256"]}


def _data(cycle: Cycle, run: RunContext, split: Digest) -> dict[str, str]:
    files = {entry.path: entry.sha256 for entry in cycle.store.trees.entries(split)}
    place = f"snap://{cycle.pipeline.name}/{run.week}"
    return {
        "train": f"{place}/train@{files['train.parquet']}",
        "val": f"{place}/val@{files['validation.parquet']}",
    }


def _environment(cycle: Cycle) -> dict[str, Any]:
    steps = (bindings.bound_train(cycle.launcher), bindings.EXPORT)
    libraries = {name: version for step in steps for name, version in identify(step, cycle.cache).libraries.items()}
    return {"launcher": "subprocess", "python": platform.python_version(), "distributions": libraries}


def load_manifest(cycle: Cycle, tree: Digest) -> Manifest:
    """Return a stored manifest."""
    return manifest.parse(digest.parse_json(cycle.store.trees.read(tree, FILE)), f"manifest {tree}")


def train(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Train the adapter in its worker, keyed by the training projection of the manifest and the data."""
    params = load_manifest(cycle, inputs["manifest"]).projection("train")
    trees = {"split": inputs["split"], "base_model": inputs["base_model"]}
    return cycle.run(Call(bindings.bound_train(cycle.launcher), trees, params, inputs["manifest"]), run)


def export(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Merge, quantise and calibrate the served artifact."""
    params = load_manifest(cycle, inputs["manifest"]).projection("export")
    trees = {"adapter": inputs["train"], "base_model": inputs["base_model"], "split": inputs["split"]}
    return cycle.run(Call(bindings.EXPORT, trees, params, inputs["manifest"]), run)
