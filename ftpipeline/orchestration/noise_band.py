"""The noise band in Dagster: one run a seed, as many at once as their pool allows, and the band of them all.

A seed is a partition beside the week, so that a backfill of a week's seeds is one run each. The band finds what those
runs made by its keys; what no run has trained yet it trains itself.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

from ftpipeline.cycle.stages import BY_NAME, EVAL_SETS
from ftpipeline.digest import Digest
from ftpipeline.errors import FtpipelineError
from ftpipeline.orchestration import plots
from ftpipeline.orchestration.assets import IO_MANAGER, WEEK, asset_key, cycle_of, dimensions, run_of, weekly_partitions
from ftpipeline.orchestration.failures import as_failure
from ftpipeline.orchestration.metadata import Metadata, fact, table
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.pipeline import Pipeline
from ftpipeline.records import ArtifactRef, Facts, StepResult

if TYPE_CHECKING:
    from ftpipeline.cycle.noise_band import SeedRun

TRAINING_POOL = "ftpipeline_training"
"""Pool of the runs that train a seed; an instance limits it, and one that does not lets all seeds train at once."""
SEED = "seed"
"""Dimension of a seed's partition, beside the week."""
SEEDS = 3

_ENVELOPE = ("upper", "mean", "lower")
_NEEDED = ("split", "base_model", *EVAL_SETS)


def noise_band_definitions(pipeline: Pipeline, workbench: Workbench) -> dg.Definitions:
    """Return the assets of seeds and band, and the job that trains the seeds of a week."""
    each = dg.define_asset_job(
        f"{pipeline.name}_seeds_job",
        selection=dg.AssetSelection.assets(seed_key(pipeline)),
        executor_def=dg.in_process_executor,
        description=f"Trains the week's manifest of {pipeline.name} under another seed; a backfill is one run a seed.",
    )
    all_of_them = dg.define_asset_job(
        f"{pipeline.name}_noise_band_job",
        selection=dg.AssetSelection.assets(band_key(pipeline)),
        executor_def=dg.in_process_executor,
        description=f"Measures how far trainings of {pipeline.name} move with the seed alone.",
    )
    assets = [_seed_asset(pipeline, workbench), _band_asset(pipeline, workbench)]
    return dg.Definitions(assets=assets, jobs=[each, all_of_them])


def seed_key(pipeline: Pipeline) -> dg.AssetKey:
    """Return the key of the asset whose partitions are the seeds of a week."""
    return dg.AssetKey([pipeline.name, "seed_result"])


def band_key(pipeline: Pipeline) -> dg.AssetKey:
    """Return the key of the noise band of a week's manifest."""
    return dg.AssetKey([pipeline.name, "noise_band"])


def seeds(pipeline: Pipeline) -> tuple[int, ...]:
    """Return the seeds of a band: the pipeline's own, and those that follow it."""
    return tuple((pipeline.file.train.seed + offset) % 2**32 for offset in range(SEEDS))


def _partitions(pipeline: Pipeline) -> dg.MultiPartitionsDefinition:
    each = dg.StaticPartitionsDefinition([str(seed) for seed in seeds(pipeline)])
    return dg.MultiPartitionsDefinition({WEEK: weekly_partitions(pipeline), SEED: each})


def _seed_asset(pipeline: Pipeline, workbench: Workbench) -> dg.AssetsDefinition:
    @dg.asset(
        key=seed_key(pipeline),
        ins=_needed(pipeline),
        partitions_def=_partitions(pipeline),
        group_name=_group(pipeline),
        io_manager_key=IO_MANAGER,
        pool=TRAINING_POOL,
        kinds={"python"},
    )
    def seed_result(context: dg.AssetExecutionContext, **inputs: ArtifactRef):  # type: ignore[no-untyped-def]
        """The week's manifest under another seed: trained, exported, and scored on every eval set."""
        from ftpipeline.cycle.noise_band import run_seed  # with the engine: not needed to load a code location

        seed = int(dimensions(context.partition_key)[SEED])
        try:
            done = run_seed(cycle_of(context, pipeline, workbench), run_of(context, pipeline), _digests(inputs), seed)
        except FtpipelineError as error:
            raise as_failure(error) from error
        return _materialised(done.training, {"artifact": fact("artifact", done.artifact), "scores": _scores(done)})

    return seed_result


def _band_asset(pipeline: Pipeline, workbench: Workbench) -> dg.AssetsDefinition:
    @dg.asset(
        key=band_key(pipeline),
        ins=_needed(pipeline),
        deps=[seed_key(pipeline)],
        partitions_def=weekly_partitions(pipeline),
        group_name=_group(pipeline),
        io_manager_key=IO_MANAGER,
        kinds={"python"},
    )
    def noise_band(context: dg.AssetExecutionContext, **inputs: ArtifactRef):  # type: ignore[no-untyped-def]
        """How far the week's manifest moves with the seed alone; gate and guard take it for its whole family."""
        from ftpipeline.cycle.noise_band import measure_band  # with the engine: not needed to load a code location

        cycle, run = cycle_of(context, pipeline, workbench), run_of(context, pipeline)
        try:
            band = measure_band(cycle, run, _digests(inputs), seeds(pipeline))
        except FtpipelineError as error:
            raise as_failure(error) from error
        return _materialised(band, shown(band.facts))

    return noise_band


def _digests(inputs: Mapping[str, ArtifactRef]) -> dict[str, Digest]:
    return {name: ref.digest for name, ref in inputs.items()}


def _materialised(result: StepResult, metadata: Metadata) -> dg.MaterializeResult[ArtifactRef]:
    more = {"action": fact("action", str(result.action)), "digest": fact("digest", result.output)}
    return dg.MaterializeResult(
        value=ArtifactRef(result.output), data_version=dg.DataVersion(result.output), metadata=metadata | more
    )


def _scores(done: "SeedRun") -> dg.MetadataValue[Any]:
    return table([{"eval set": role, "score": result.facts["score"]} for role, result in done.scores.items()])


def shown(facts: Facts) -> Metadata:
    """Return a band as people look at it: scores by seed, and the curves that healthy trainings stay within."""
    loss = {name: list(zip(facts["loss"]["steps"], facts["loss"][name], strict=True)) for name in _ENVELOPE}
    drift = {
        f"seed {seed}": list(zip(facts["kl"]["steps"], values, strict=True))
        for seed, values in zip(facts["seeds"], facts["kl"]["seeds"], strict=True)
    }
    return {
        "scores": table(facts["scores"], ("role", "scores", "mean", "spread", "width")),
        "loss": dg.MetadataValue.md(plots.inline(plots.curves(loss, "optimizer step"), "loss of all seeds")),
        "drift": dg.MetadataValue.md(plots.inline(plots.curves(drift, "optimizer step"), "drift from the base model")),
        "family": fact("family", facts["family"]),
        "seeds": fact("seeds", ", ".join(map(str, facts["seeds"]))),
    }


def _needed(pipeline: Pipeline) -> Mapping[str, dg.AssetIn]:
    """Return what both read; Dagster maps the week of a seed's partition to the week by itself."""
    return {name: dg.AssetIn(key=asset_key(pipeline, BY_NAME[name])) for name in _NEEDED}


def _group(pipeline: Pipeline) -> str:
    return f"{pipeline.name}_noise"
