"""A fully cached weekly run, against as many assets that do nothing: same graph, executor and kind of instance.

Both sides are timed inside the process, in CPU-seconds, from loaded definitions to the end of the run, in turn; the
cached side is one real week of a small pipeline that was run before. Dagster
itself takes its share for partitions, so they are also given to the assets
that do nothing.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _measure import Figure, arguments, at_most, report

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.stages import STAGES, Stage
from ftpipeline.orchestration.assets import weekly_partitions
from ftpipeline.orchestration.build import build_definitions, job_name
from ftpipeline.orchestration.run import persistent_instance
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.store.home import Home
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline

_ROUNDS = 15


def nothing_job(name: str, partitions: dg.PartitionsDefinition[str] | None = None) -> dg.JobDefinition:
    """Return a job of as many assets as a week has, in the same graph, that pass a constant on."""

    def asset(stage: Stage) -> dg.AssetsDefinition:
        upstream = {each: dg.AssetIn(key=[name, each]) for each in stage.after}

        @dg.asset(key=[name, stage.name], ins=upstream, partitions_def=partitions if stage.weekly else None)
        def body(**inputs: int):  # type: ignore[no-untyped-def]
            return dg.MaterializeResult(value=1)

        return body

    assets = [asset(stage) for stage in STAGES]
    job = dg.define_asset_job(name, selection=dg.AssetSelection.assets(*assets))
    return dg.Definitions(assets=assets, jobs=[job], executor=dg.in_process_executor).resolve_job_def(name)


def timed(run: Callable[[], dg.ExecuteInProcessResult]) -> float:
    """Return the CPU-seconds of a run that must succeed."""
    before = time.process_time()
    if not run().success:
        raise SystemExit("a run failed; nothing was measured")
    return time.process_time() - before


def main() -> None:
    """Measure."""
    options = arguments(__doc__ or "").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pipeline = pipelines.load(build_tiny_pipeline(Path(folder) / "pipeline"))
        home = Home(Path(folder) / "home")
        cached = build_definitions(pipeline, Workbench(home)).resolve_job_def(job_name(pipeline))
        nothing, weekly = nothing_job("nothing"), nothing_job("nothing_weekly", weekly_partitions(pipeline))
        with persistent_instance(home) as instance:
            sides = (
                lambda: cached.execute_in_process(instance=instance, partition_key=WEEK),
                lambda: nothing.execute_in_process(instance=instance),
                lambda: weekly.execute_in_process(instance=instance, partition_key=WEEK),
            )
            for side in sides:
                timed(side)
            rounds = [[timed(side) for side in sides] for _ in range(_ROUNDS)]
    week, bare, partitioned = (statistics.median(side) for side in zip(*rounds, strict=True))
    figures = [
        at_most("cached week / as many assets that do nothing", statistics.median(a / b for a, b, _ in rounds), 1.15),
        Figure("cached week / the same with the week's partitions", statistics.median(a / c for a, _, c in rounds)),
        Figure("cached week", week, "CPU-s"),
        Figure("assets that do nothing", bare, "CPU-s"),
        Figure("the same with the week's partitions", partitioned, "CPU-s"),
    ]
    report(figures, options.json)


if __name__ == "__main__":
    main()
