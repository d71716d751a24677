"""Definitions of a pipeline: assets, job, schedule, executor."""

from functools import cache

import dagster as dg

from ftpipeline.cycle.stages import STAGES
from ftpipeline.orchestration.assets import IO_MANAGER, asset_key, pipeline_assets
from ftpipeline.orchestration.divergence import guard_definitions
from ftpipeline.orchestration.eval_sets import eval_sets_definitions
from ftpipeline.orchestration.io_manager import ArtifactIOManager
from ftpipeline.orchestration.noise_band import noise_band_definitions
from ftpipeline.orchestration.promotion import release_assets
from ftpipeline.orchestration.quarantine import quarantine_checks
from ftpipeline.orchestration.schedules import weekly_schedule
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.pipeline import Pipeline
from ftpipeline.store.home import Home


@cache
def code_location_workbench() -> Workbench:
    """Return the workbench of this process's code location, at the home that the environment names."""
    return Workbench(Home.locate(None))


@cache
def _io_manager(workbench: Workbench) -> ArtifactIOManager:
    """One object a workbench: Dagster merges the definitions of several pipelines only where resources are the same."""
    return ArtifactIOManager(workbench)


def job_name(pipeline: Pipeline) -> str:
    """Return the name of the job that runs a whole week."""
    return f"{pipeline.name}_job"


def build_definitions(pipeline: Pipeline, workbench: Workbench | None = None) -> dg.Definitions:
    """Return everything of one pipeline that Dagster shows and runs."""
    workbench = workbench if workbench is not None else code_location_workbench()
    quarantine = quarantine_checks(pipeline, workbench)
    stages = dg.AssetSelection.assets(*(asset_key(pipeline, stage) for stage in STAGES))
    job = dg.define_asset_job(
        job_name(pipeline),
        selection=stages - dg.AssetSelection.checks(quarantine),  # every step of a week refuses what they would find
        executor_def=dg.in_process_executor,
        description=f"One weekly cycle of {pipeline.name}, from the snapshot to the registry.",
    )
    week = dg.Definitions(
        assets=[*pipeline_assets(pipeline, workbench), *release_assets(pipeline, workbench)],
        jobs=[job],
        schedules=[weekly_schedule(pipeline, job_name(pipeline))],
        asset_checks=[quarantine],
        resources={IO_MANAGER: _io_manager(workbench)},
        executor=dg.in_process_executor,
    )
    return dg.Definitions.merge(
        week,
        eval_sets_definitions(pipeline, workbench),
        noise_band_definitions(pipeline, workbench),
        guard_definitions(workbench),
    )
