"""A code location of one tiny pipeline, run in this process and in an instance of its own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb

from ftpipeline import digest
from ftpipeline import pipeline as pipelines
from ftpipeline.cycle.stages import BY_NAME, EVAL_SETS, STAGES
from ftpipeline.digest import Digest
from ftpipeline.orchestration.assets import asset_key
from ftpipeline.orchestration.build import build_definitions, job_name
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.pipeline import Pipeline
from ftpipeline.steps.manifest import FILE
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline

Result = dg.ExecuteInProcessResult | dg.JobExecutionResult
Shown = Mapping[str, dg.MetadataValue[Any]]

SHARED_STAGES = ("base_model", *EVAL_SETS)
DATA_STAGES = (*SHARED_STAGES, "snapshot", "curate", "split", "manifest")
"""What comes before training: real, and done in a moment."""
ALL_STAGES = tuple(stage.name for stage in STAGES)

LEARNING: Mapping[str, Any] = {
    "seed": 1,
    "lr": 0.01,
    "max_steps": 100,
    "batch_size": 16,
    "max_length": 16,
    "warmup_steps": 5,
    "modules_to_save": ["classifier", "pooler"],
    "lora": {"r": 4, "lora_alpha": 8, "target_modules": ["query", "key", "value"]},
}
"""Training settings that the tiny model learns its task with; it takes seconds."""


@dataclass(frozen=True)
class Location:
    """One pipeline in one home, seen through Dagster."""

    pipeline: Pipeline
    workbench: Workbench
    instance: dg.DagsterInstance

    @property
    def store(self) -> Store:
        return self.workbench.store

    @property
    def definitions(self) -> dg.Definitions:
        return build_definitions(self.pipeline, self.workbench)

    def key(self, stage: str) -> dg.AssetKey:
        return asset_key(self.pipeline, BY_NAME[stage])

    def run(self, *stages: str, week: str = WEEK) -> dg.ExecuteInProcessResult:
        """Materialise the assets of some stages, as a selection in the UI does."""
        return self.definitions.resolve_job_def(job_name(self.pipeline)).execute_in_process(
            instance=self.instance,
            partition_key=week,
            asset_selection=[self.key(stage) for stage in stages],
            raise_on_error=False,
        )

    def rerun(self, parent: Result, *stages: str) -> dg.JobExecutionResult:
        """Re-execute stages of a run, as the button in the UI does."""
        place = {"file": str(self.pipeline.path), "home": str(self.workbench.home.root)}
        job = dg.build_reconstructable_job(__name__, rebuilt_job.__name__, reconstructable_kwargs=place)
        steps = ["__".join(self.key(stage).path) for stage in stages]
        run = self.instance.get_run_by_id(parent.run_id)
        assert run is not None
        options = dg.ReexecutionOptions(parent.run_id, steps)
        return dg.execute_job(job, self.instance, tags=run.tags, reexecution_options=options)

    def shown(self, result: Result, stage: str) -> Shown:
        """Return the metadata that a run's materialisation of a stage carries."""
        (event,) = (e for e in result.get_asset_materialization_events() if e.asset_key == self.key(stage))
        return event.materialization.metadata

    def digest(self, result: Result, stage: str) -> Digest:
        return digest.parse(self.shown(result, stage)["digest"].value)

    def base_of_manifest(self, result: Result) -> Digest:
        """Return the base model that the manifest of a run pins: what its manifest stage consumed."""
        document = digest.parse_json(self.store.trees.read(self.digest(result, "manifest"), FILE))
        return digest.parse(document["base_model"]["tree_sha256"])

    def change_base_model(self) -> None:
        """Change a byte of the folder that the base model is frozen from."""
        config = self.pipeline.path.parent / "base" / "config.json"
        config.write_text(config.read_text() + "\n")

    def log(self, result: Result) -> list[str]:
        """Return every record of a run's log as the text that is stored."""
        return [dg.serialize_value(entry) for entry in self.instance.all_logs(result.run_id)]

    def texts(self) -> list[str]:
        """Return the texts of all tickets, and of the eval sets."""
        folder = self.pipeline.path.parent
        with duckdb.connect(str(folder / "tickets.duckdb"), read_only=True) as connection:
            rows = connection.execute("SELECT body FROM tickets").fetchall()
            for name in ("gold.csv", "regression.csv", "safety.csv"):
                rows += connection.execute("SELECT text FROM read_csv(?)", [str(folder / name)]).fetchall()
        return [text for (text,) in rows]

    def texts_in_log(self, result: Result) -> list[str]:
        """Return the texts that some record of a run's log holds."""
        records, texts = self.log(result), self.texts()
        assert len(records) > 20
        assert len(texts) > 100
        return [text for text in texts for record in records if text in record]


def rebuilt_job(file: str, home: str) -> dg.JobDefinition:
    """Build the job anew, as the process of a re-execution does."""
    pipeline = pipelines.load(Path(file))
    return build_definitions(pipeline, Workbench(Home(Path(home)))).resolve_job_def(job_name(pipeline))


@contextmanager
def tiny_location(folder: Path, **sections: Any) -> Iterator[Location]:
    """Make a tiny pipeline, its home and an instance that is forgotten afterwards."""
    pipeline = pipelines.load(build_tiny_pipeline(folder / "pipeline", **sections))
    workbench = Workbench(Home(folder / "home"))
    with dg.DagsterInstance.ephemeral() as instance:
        yield Location(pipeline, workbench, instance)
        workbench.store.close()


def failure(result: Result) -> dg.DagsterEvent:
    """Return the event of the one step that failed."""
    (event,) = result.filter_events(lambda event: event.is_step_failure)
    return event
