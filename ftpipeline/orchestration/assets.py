"""One asset of each stage of the cycle."""

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

import dagster as dg

from ftpipeline.cycle.stages import BY_NAME, STAGES, Stage, run_stage
from ftpipeline.digest import Digest
from ftpipeline.errors import FtpipelineError
from ftpipeline.orchestration.checks import check_specs, results_of_checks
from ftpipeline.orchestration.failures import failure_of
from ftpipeline.orchestration.io_manager import parent_runs
from ftpipeline.orchestration.metadata import Metadata
from ftpipeline.orchestration.observe import LogObserver, Observers
from ftpipeline.orchestration.present import gate, present
from ftpipeline.orchestration.standing import standing
from ftpipeline.orchestration.trail import source, trail
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.pipeline import Pipeline
from ftpipeline.records import ArtifactRef, RunContext, StepResult
from ftpipeline.weeks import DAYS

if TYPE_CHECKING:
    from ftpipeline.cycle.cycle import Cycle

IO_MANAGER = "artifact_io_manager"
WEEK = "week"
"""Dimension of the week, in partitions that have another one beside it."""


def weekly_partitions(pipeline: Pipeline) -> dg.WeeklyPartitionsDefinition:
    """Return the weeks of a pipeline; keys are the dates of first days, whatever day that is."""
    week = pipeline.file.week
    # Dagster counts days from Sunday, and shifts the start date forward to the first such day.
    offset = (DAYS.index(week.starts) + 1) % 7
    return dg.WeeklyPartitionsDefinition(start_date=week.first, timezone=week.timezone, day_offset=offset)


def asset_key(pipeline: Pipeline, stage: Stage) -> dg.AssetKey:
    """Return `[pipeline, stage]`, or the shared key of an unpartitioned source."""
    if stage.weekly:
        return dg.AssetKey([pipeline.name, stage.name])
    if stage.name == "base_model":
        return dg.AssetKey(["base_model", pipeline.file.base_model.name])
    return dg.AssetKey(["eval_set", pipeline.file.eval_sets.by_role()[stage.name.removeprefix("eval_")].name])


def pipeline_assets(pipeline: Pipeline, workbench: Workbench) -> list[dg.AssetsDefinition]:
    """Return the assets of a pipeline, the shared ones included."""
    return [
        _weekly_asset(pipeline, stage, workbench) if stage.weekly else _shared(pipeline, stage, workbench)
        for stage in STAGES
    ]


def _weekly_asset(pipeline: Pipeline, stage: Stage, workbench: Workbench) -> dg.AssetsDefinition:
    return _asset(pipeline, stage, workbench, partitions=weekly_partitions(pipeline))


_SHARED: dict[tuple[Workbench, dg.AssetKey], tuple[object, dg.AssetsDefinition]] = {}


def _shared(pipeline: Pipeline, stage: Stage, workbench: Workbench) -> dg.AssetsDefinition:
    """Return the one definition of an asset that several pipelines name; they must mean the same thing by it.

    It stands in the group of the first pipeline that names it, so that the group's Materialize all has what it needs.
    """
    key = asset_key(pipeline, stage)
    declared = _declared(pipeline, stage)
    known = _SHARED.get((workbench, key))
    if known is None:
        known = declared, _asset(pipeline, stage, workbench, partitions=None)
        _SHARED[workbench, key] = known
    if known[0] != declared:
        raise dg.DagsterInvalidDefinitionError(
            f"{key.to_user_string()} is declared differently by {pipeline.path} and another pipeline; rename one"
        )
    return known[1]


def _declared(pipeline: Pipeline, stage: Stage) -> object:
    if stage.name == "base_model":
        return pipeline.file.base_model
    declared = pipeline.file.eval_sets.by_role()[stage.name.removeprefix("eval_")]
    return declared.model_copy(update={"file": str(pipeline.resolve(declared.file))}), pipeline.labels


def _asset(
    pipeline: Pipeline,
    stage: Stage,
    workbench: Workbench,
    *,
    partitions: dg.WeeklyPartitionsDefinition | None,
) -> dg.AssetsDefinition:
    upstream = {name: _input(pipeline, stage, BY_NAME[name]) for name in stage.after}

    @dg.asset(
        key=asset_key(pipeline, stage),
        ins=upstream,
        partitions_def=partitions,
        group_name=pipeline.name,
        io_manager_key=IO_MANAGER,
        description=stage.about,
        check_specs=check_specs(asset_key(pipeline, stage), stage.name),
        kinds={"python"},
    )
    def body(context: dg.AssetExecutionContext, **inputs: ArtifactRef):  # type: ignore[no-untyped-def]
        # Dagster reads a return annotation as the type of every output, the checks included.
        return _materialise(context, pipeline, stage, workbench, inputs)

    return body


def _input(pipeline: Pipeline, stage: Stage, upstream: Stage) -> dg.AssetIn:
    """Say that a week's stage takes the same week's output; left to infer it, Dagster computes calendars each time."""
    same_week = dg.IdentityPartitionMapping() if stage.weekly and upstream.weekly else None
    return dg.AssetIn(key=asset_key(pipeline, upstream), partition_mapping=same_week)


def _materialise(
    context: dg.AssetExecutionContext,
    pipeline: Pipeline,
    stage: Stage,
    workbench: Workbench,
    inputs: Mapping[str, ArtifactRef],
) -> dg.MaterializeResult[ArtifactRef]:
    digests = {name: ref.digest for name, ref in inputs.items()}
    try:
        cycle = cycle_of(context, pipeline, workbench)
        result = run_stage(cycle, stage, run_of(context, pipeline), digests)
        metadata = present(stage.name, result, _origin(context, cycle, stage, result, digests))
    except FtpipelineError as error:
        raise failure_of(stage.name, error, context.op_execution_context.retry_number) from error
    workbench.on_stage(stage.name, result)
    context.add_asset_metadata(metadata)  # given with the result, all of it would be stored with the step's output too
    return dg.MaterializeResult(
        value=ArtifactRef(result.output),
        data_version=dg.DataVersion(result.output),
        check_results=results_of_checks(stage.name, result),
    )


def _origin(
    context: dg.AssetExecutionContext, cycle: "Cycle", stage: Stage, result: StepResult, inputs: Mapping[str, Digest]
) -> Metadata:
    """Return where a stage's output comes from, for the stages that people ask it of."""
    if stage.name == "snapshot":
        return source(cycle.store, result.output)
    if stage.name == "register":
        keys = {each.name: asset_key(cycle.pipeline, each) for each in STAGES}
        compared = gate(cycle.facts_of("gate", inputs["gate"]))["comparison"]
        moves = standing(cycle.registry, cycle.pipeline.name)
        return {"comparison": compared, **moves} | trail(
            cycle.store, result.output, inputs, keys, context.partition_key
        )
    return {}


def cycle_of(context: dg.AssetExecutionContext, pipeline: Pipeline, workbench: Workbench) -> "Cycle":
    """Return a pipeline in the workbench's store, heard and launched through a context."""
    from ftpipeline.cycle.cycle import Cycle  # with the engine and the registry: not needed to load a code location
    from ftpipeline.engine.bind import BoundPort

    heard = [LogObserver(context.log)] + ([workbench.observer] if workbench.observer is not None else [])
    launcher = BoundPort("ftpipeline.orchestration.launchers:PipesLauncher", {"context": context}, keyed=False)
    return Cycle(pipeline, workbench.store, Observers(heard), launcher)


def run_of(context: dg.AssetExecutionContext, pipeline: Pipeline) -> RunContext:
    """Return the run of a context, with its week where it has one."""
    return RunContext(
        run_id=context.run.run_id,
        pipeline=pipeline.name,
        week=date.fromisoformat(dimensions(context.partition_key)[WEEK]) if context.has_partition_key else None,
        parent_run_ids=parent_runs(context.instance, context.run.parent_run_id),
        attempt=context.op_execution_context.retry_number,
    )


def dimensions(partition_key: str) -> Mapping[str, str]:
    """Return a partition key by dimension; a key of one dimension is a week's."""
    if isinstance(partition_key, dg.MultiPartitionKey):
        return partition_key.keys_by_dimension
    return {WEEK: partition_key}
