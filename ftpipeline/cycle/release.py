"""The stages that decide: evaluate, gate, register."""

from collections.abc import Mapping
from typing import Any

from ftpipeline import digest
from ftpipeline.cycle import bindings
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.data import Inputs, week_of
from ftpipeline.cycle.floors import family_of, find_band
from ftpipeline.cycle.model import load_manifest
from ftpipeline.cycle.promotion import advance
from ftpipeline.cycle.provenance import check_release
from ftpipeline.digest import Digest
from ftpipeline.engine.runner import Call
from ftpipeline.receipts import SigningKey
from ftpipeline.records import Action, RunContext, StepResult
from ftpipeline.schema import ROLES
from ftpipeline.steps.artifact import RECORD_FILE, parse_export_record


def evaluate(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Score the candidate and the pinned production on every eval set, each score memoised by artifact and set."""
    candidate, pin = inputs["export"], cycle.pin(run)
    projection = load_manifest(cycle, inputs["manifest"]).projection("evaluate")
    sides = {"candidate": candidate}
    if pin.digest is not None and pin.digest != candidate:
        sides["production"] = pin.digest
    scored = {
        (side, role): score(cycle, run, artifact, role, inputs[f"eval_{role}"], projection)
        for side, artifact in sides.items()
        for role in ROLES
    }
    trees = {f"{side}_{role}": result.output for (side, role), result in scored.items()}
    params = {"candidate": candidate, "production": sides.get("production")}
    joined = cycle.run(Call(bindings.REPORT, trees, params, inputs["manifest"]), run)
    confusion = digest.parse_json(cycle.store.trees.read(scored["candidate", "task"].output, "confusion.json"))
    return _together("evaluate", joined, scored, {"confusion": confusion["counts"]})


def score(
    cycle: Cycle, run: RunContext, artifact: Digest, role: str, eval_set: Digest, projection: Mapping[str, Any]
) -> StepResult:
    """Score one artifact on the eval set of a role; `projection` holds the other parameters of `evaluate`."""
    record = parse_export_record(cycle.store.trees.read(artifact, RECORD_FILE))
    trees = {"artifact": artifact, "eval_set": eval_set}
    if not record.merge_adapter:
        trees["base_model"] = digest.parse(record.base_model)
    params = {"artifact": artifact, "eval_set": eval_set, "role": role, **projection}
    return cycle.run(Call(bindings.bound_evaluate(record.task, record.merge_adapter), trees, params), run)


def _together(
    name: str, last: StepResult, parts: Mapping[tuple[str, str], StepResult], more: Mapping[str, Any]
) -> StepResult:
    """One result for a stage of several memoised steps: executed if any part of it was."""
    results = [*parts.values(), last]
    action = Action.EXECUTED if any(result.action is Action.EXECUTED for result in results) else Action.REUSED
    evaluations = {f"{side}_{role}": part.facts for (side, role), part in parts.items()}
    facts = {**last.facts, "evaluations": evaluations, **more}
    return StepResult(name, action, last.key, last.output, facts, sum(result.seconds for result in results))


def gate(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Compare the candidate with the production pinned for this run, and the gain with the noise that was measured."""
    pin, pinned = cycle.pin(run), load_manifest(cycle, inputs["manifest"])
    measured = find_band(cycle.store, family_of(pinned))
    params = {
        **pinned.projection("gate"),
        "manifest": inputs["manifest"],
        "candidate": inputs["export"],
        "production": {"digest": pin.digest, "generation": pin.generation},
        "noise_band": None if measured is None else measured.params(),
    }
    return cycle.run(Call(bindings.GATE, {"report": inputs["evaluate"]}, params, inputs["manifest"]), run)


def register(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Record the candidate or the rejection; never memoised, idempotent by (name, artifact, manifest).

    Raises:
        GateRecordError: the steps of this home do not vouch for what is to be registered.
        LeakageError: the rows behind the artifact were not found free of eval rows.
    """
    check_release(cycle, inputs)
    cycle.receipts.issue(inputs["gate"], inputs["evaluate"], run.run_id, SigningKey.of_home(cycle.store.home.root))
    entry, created = cycle.registry.register(
        cycle.pipeline.name,
        artifact=inputs["export"],
        manifest=inputs["manifest"],
        base_model=inputs["base_model"],
        report=inputs["evaluate"],
        gate=inputs["gate"],
        run_id=run.run_id,
        week=week_of(run).isoformat(),
        actor=f"run {run.run_id}",
    )
    facts = {
        "name": entry.name,
        "artifact": entry.artifact,
        "manifest": entry.manifest,
        **advance(cycle, entry),
        "verdict": cycle.facts_of("gate", inputs["gate"])["verdict"],
        "reasons": [dict(reason) for reason in entry.reasons],
    }
    key = digest.of_json([entry.name, entry.artifact, entry.manifest])
    action = Action.EXECUTED if created else Action.REUSED
    result = StepResult("register", action, key, entry.artifact, facts, 0.0)
    cycle.observer.finished(result)
    return result
