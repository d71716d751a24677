"""Eval sets on a schedule of their own: new versions are frozen, and what will be compared next is scored on them."""

from typing import TYPE_CHECKING

import dagster as dg

from ftpipeline import digest
from ftpipeline.cycle.stages import BY_NAME, EVAL_SETS
from ftpipeline.errors import FtpipelineError
from ftpipeline.orchestration.assets import asset_key, cycle_of, run_of
from ftpipeline.orchestration.failures import as_failure
from ftpipeline.orchestration.metadata import Metadata, table
from ftpipeline.orchestration.promotion import release_group
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.pipeline import Pipeline
from ftpipeline.records import ArtifactRef

if TYPE_CHECKING:
    from ftpipeline.cycle.rescore import Scores


def rescored_key(pipeline: Pipeline) -> dg.AssetKey:
    """Return the key of the asset that holds the scores on the eval sets as they are now."""
    return dg.AssetKey([pipeline.name, "rescored"])


def rescored_asset(pipeline: Pipeline, workbench: Workbench) -> dg.AssetsDefinition:
    """Return the asset that scores production and the last candidates on the eval sets as they are now."""
    sets = {name: dg.AssetIn(key=asset_key(pipeline, BY_NAME[name])) for name in EVAL_SETS}

    @dg.asset(key=rescored_key(pipeline), ins=sets, group_name=release_group(pipeline), kinds={"python"})
    def rescored(context: dg.AssetExecutionContext, **inputs: ArtifactRef):  # type: ignore[no-untyped-def]
        """Production and the last candidates, scored on the eval sets as they are now, before the next gate."""
        from ftpipeline.cycle.rescore import rescore  # with the engine: not needed to load a code location

        try:
            cycle = cycle_of(context, pipeline, workbench)
            scores = rescore(cycle, run_of(context, pipeline), {name: ref.digest for name, ref in inputs.items()})
        except FtpipelineError as error:
            raise as_failure(error) from error
        version = digest.of_json(sorted(result.output for result in scores.values()))
        return dg.MaterializeResult(metadata=_shown(scores), data_version=dg.DataVersion(version))

    return rescored


def _shown(scores: "Scores") -> Metadata:
    rows = [
        {
            "stage": str(stage),
            "artifact": artifact,
            "eval set": "{name} {version}".format(**result.facts["eval_set"]),
            "score": result.facts["score"],
            "action": str(result.action),
        }
        for (stage, artifact, _), result in scores.items()
    ]
    return {"scores": table(rows)}


def eval_sets_definitions(pipeline: Pipeline, workbench: Workbench) -> dg.Definitions:
    """Return the asset, the job that freezes the eval sets before it, and the schedule of both.

    The schedule is slower than the weekly one, and stopped until a person starts it.
    """
    keys = [*(asset_key(pipeline, BY_NAME[name]) for name in EVAL_SETS), rescored_key(pipeline)]
    job = dg.define_asset_job(
        f"{pipeline.name}_eval_sets_job",
        selection=dg.AssetSelection.assets(*keys),
        executor_def=dg.in_process_executor,
        description=f"Freezes new versions of the eval sets of {pipeline.name}, and scores what is compared next.",
    )
    when = pipeline.file.eval_sets.schedule
    schedule = dg.ScheduleDefinition(
        name=f"{pipeline.name}_eval_sets",
        job=job,
        cron_schedule=when.cron,
        execution_timezone=when.timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Freezes new versions of the eval sets of {pipeline.name}, between two weekly runs.",
    )
    return dg.Definitions(assets=[rescored_asset(pipeline, workbench)], jobs=[job], schedules=[schedule])
