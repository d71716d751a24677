"""The stages that make data: base_model, eval sets, snapshot, curate, split."""

from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ftpipeline import digest
from ftpipeline.cycle import bindings
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.exams import earlier_eval_sets
from ftpipeline.cycle.kernels import compile_kernels
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundPort
from ftpipeline.engine.runner import Call
from ftpipeline.errors import BaseModelMismatchError, EvalSetError, PipelineFileError
from ftpipeline.pipeline import EvalSet, Pipeline, Source
from ftpipeline.records import Facts, RunContext, StepResult
from ftpipeline.schema import ROLES
from ftpipeline.steps.base_model import gguf_file, packaged_folder
from ftpipeline.steps.leakage.check import FEW_ROWS
from ftpipeline.steps.row_formats import Dialect
from ftpipeline.store.erasures import ErasedKeyList
from ftpipeline.store.trees import tree_digest

Inputs = Mapping[str, Digest]


def base_model(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Freeze the base model; local bytes are hashed at every run.

    Raises:
        BaseModelMismatchError: the bytes are not the pinned ones.
    """
    declared = cycle.pipeline.file.base_model
    folder = None if declared.kind == "hub" else _model_folder(cycle, declared.kind, declared.location)
    revision = declared.revision
    if folder is not None:
        file = gguf_file(folder)
        found = tree_digest(folder) if file is None else digest.of_file(file)
        if revision not in (None, found):
            raise BaseModelMismatchError(
                f"base_model {declared.name!r}: {declared.source} holds {found}, pinned is {revision}; "
                "restore the pinned files or change the revision"
            )
        revision = found
    params = {"name": declared.name, "source": declared.kind, "repo": declared.location, "revision": revision}
    if declared.kind == "folder":
        params["repo"] = declared.name  # a folder's place says nothing about its content
    return cycle.run(Call(bindings.bound_base_model(folder), {}, params), run)


def _model_folder(cycle: Cycle, kind: str, location: str) -> Path:
    folder = cycle.pipeline.resolve(location) if kind == "folder" else packaged_folder(location)
    if not folder.is_dir() and gguf_file(folder) is None:
        raise PipelineFileError(f"base_model.source: {folder} is neither a folder nor a GGUF file; check the path")
    return folder


def eval_set(role: str, cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Freeze the eval set of one role.

    Raises:
        EvalSetError: the file is missing, unreadable, or differs from what the version held before.
    """
    declared = cycle.pipeline.file.eval_sets.by_role()[role]
    path = cycle.pipeline.resolve(declared.file)
    if not path.is_file():
        raise EvalSetError(f"eval_sets.{role}: {path} does not exist; check the path")

    def claim(output: Digest, facts: Facts) -> None:
        cycle.store.eval_sets.claim(declared.name, declared.version, output)

    call = Call(bindings.bound_eval_set(path), {}, _eval_set_params(declared, path, cycle), check=claim)
    result = cycle.run(call, run)
    claim(result.output, result.facts)  # a reused result may stand under another version's claim
    return result


eval_task, eval_regression, eval_safety = (partial(eval_set, role) for role in ROLES)


def _eval_set_params(declared: EvalSet, path: Path, cycle: Cycle) -> dict[str, Any]:
    return {
        "name": declared.name,
        "version": declared.version,
        "format": path.suffix.lstrip(".").lower(),
        "columns": declared.columns.model_dump(),
        "content": digest.of_file(path),
        "labels": list(cycle.pipeline.labels),
    }


def snapshot(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Freeze the rolling window that ends with the run's week."""
    source = cycle.pipeline.file.source
    week = week_of(run)
    params = {
        "pipeline": cycle.pipeline.name,
        "connection": source.connection,
        **source_params(source),
        **week_window(cycle.pipeline, week),
    }
    erased = ErasedKeyList(cycle.store.database).digests()
    return cycle.run(Call(bindings.bound_snapshot(source_port(cycle.pipeline), erased), {}, params), run)


def week_window(pipeline: Pipeline, week: date) -> dict[str, str]:
    """Return the bounds of the rolling window that ends with a week."""
    calendar = pipeline.file.week.calendar
    start = calendar.instant(week + timedelta(days=7 - pipeline.file.source.window_days))
    return {"window_start": start.isoformat(), "window_end": calendar.bounds(week)[1].isoformat()}


def source_params(source: Source) -> dict[str, Any]:
    """Return what the pipeline file says about reading the source, whatever the week."""
    how = {"file": source.file.model_dump(mode="json")} if source.file else {}
    return {
        **how,
        "query": source.asked,
        "parameters": dict(source.parameters),
        "columns": source.columns.model_dump(mode="json"),
        "timezone": source.naive_timezone,
        "max_reject_rate": source.max_reject_rate,
    }


def source_port(pipeline: Pipeline) -> BoundPort:
    """Return the port behind which the pipeline's source is."""
    source = pipeline.file.source
    if source.postgres is not None:
        return bindings.postgres_source(source.postgres.name, source.postgres.url_env)
    if source.file is not None:
        file = source.file
        dialect = Dialect(file.form, file.encoding, file.delimiter, file.quote)
        return bindings.file_source(pipeline.resolve(file.path), dialect)
    return bindings.duckdb_source(pipeline.resolve(str(source.duckdb)))


def curate(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Keep what may be trained on."""
    declared = cycle.pipeline.file.curate.model_dump(mode="json")
    params = {"labels": list(cycle.pipeline.labels), **declared}
    return cycle.run(Call(bindings.CURATE, {"snapshot": inputs["snapshot"]}, params), run)


def split(cycle: Cycle, run: RunContext, inputs: Inputs) -> StepResult:
    """Assign whole groups and check for leakage from validation and every eval set there ever was."""
    exams = {f"eval_{role}": inputs[f"eval_{role}"] for role in ROLES}
    trees = {"curated": inputs["curate"], **exams, **earlier_eval_sets(cycle, exams.values())}
    params = cycle.pipeline.file.split.model_dump(mode="json")
    call = Call(bindings.SPLIT, trees, params, before=partial(_prepare_leakage, cycle, inputs["curate"]))
    return cycle.run(call, run)


def _prepare_leakage(cycle: Cycle, curated: Digest) -> None:
    """Compile the leakage check for as many rows as need it: a confined step would do it anew each time."""
    if cycle.facts_of("curate", curated)["rows"] > FEW_ROWS:
        compile_kernels(cycle.cache)


def week_of(run: RunContext) -> date:
    """Return the run's week.

    Raises:
        PipelineFileError: it has none.
    """
    if run.week is None:
        raise PipelineFileError("this stage needs a week; launch it for a weekly partition")
    return run.week
