"""A job over a pipeline's data stages whose steps each run in a process of their own."""

import dagster as dg

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.stages import BY_NAME
from ftpipeline.orchestration.assets import asset_key
from ftpipeline.orchestration.build import build_definitions

STAGES = ("eval_task", "eval_regression", "eval_safety", "snapshot", "curate", "split")


def make_job() -> dg.JobDefinition:
    """Return the job over the pipeline that the environment names."""
    (file,) = pipelines.from_environment()
    pipeline = pipelines.load(file)
    job = dg.define_asset_job(
        "data_stages",
        selection=dg.AssetSelection.assets(*(asset_key(pipeline, BY_NAME[name]) for name in STAGES)),
        executor_def=dg.multiprocess_executor,
    )
    return dg.Definitions.merge(build_definitions(pipeline), dg.Definitions(jobs=[job])).resolve_job_def("data_stages")
