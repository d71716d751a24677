"""A fully cached weekly run, against as many assets that do nothing: same graph, executor and kind of instance.

Both sides are timed inside the process, in CPU-seconds, from loaded definitions to the end of the run, in turn; the
cached side is one real week of a small pipeline that was run before.
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
from ftpipeline.orchestration.build import build_definitions, job_name
from ftpipeline.orchestration.run import persistent_instance
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.store.home import Home
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline

_ROUNDS = 9


def nothing_job() -> dg.Definitions:
    """Return as many assets as a week has, in the same graph, that pass a constant on."""

    def asset(stage: Stage) -> dg.AssetsDefinition:
        upstream = {name: dg.AssetIn(key=["nothing", name]) for name in stage.after}

        @dg.asset(key=["nothing", stage.name], ins=upstream)
        def body(**inputs: int):  # type: ignore[no-untyped-def]
            return dg.MaterializeResult(value=1)

        return body

    assets = [asset(stage) for stage in STAGES]
    job = dg.define_asset_job("nothing", selection=dg.AssetSelection.assets(*assets))
    return dg.Definitions(assets=assets, jobs=[job], executor=dg.in_process_executor)


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
        nothing = nothing_job().resolve_job_def("nothing")
        with persistent_instance(home) as instance:
            sides = (
                lambda: cached.execute_in_process(instance=instance, partition_key=WEEK),
                lambda: nothing.execute_in_process(instance=instance),
            )
            for side in sides:
                timed(side)
            pairs = [(timed(sides[0]), timed(sides[1])) for _ in range(_ROUNDS)]
    figures = [
        at_most("cached week / as many assets that do nothing", statistics.median(a / b for a, b in pairs), 1.15),
        Figure("cached week", statistics.median(a for a, _ in pairs), "CPU-s"),
        Figure("assets that do nothing", statistics.median(b for _, b in pairs), "CPU-s"),
    ]
    report(figures, options.json)


if __name__ == "__main__":
    main()
