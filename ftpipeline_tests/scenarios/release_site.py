"""A site with a production, a candidate and a candidate of an older gate, driven by materialising single assets.

What each attempt does to its site nobody else sees: the site is made once, and copied for every attempt.
"""

import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dagster as dg

from ftpipeline import pipeline as pipelines
from ftpipeline.digest import Digest, parse
from ftpipeline.orchestration.io_manager import asset_name
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.registry.registry import Registry
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.orchestration.location import ALL_STAGES, LEARNING, Location, Result, failure
from ftpipeline_tests.tiny_model import LABELS, WORDS
from ftpipeline_tests.tiny_pipeline import NEXT_WEEK, WEEK, build_tiny_pipeline, write_pipeline

NAME = "tiny"
WHO = {"reason": "it answers better", "actor": "ana"}
_GATES = {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 1.0, "safety_max_drop": 1.0}
_RETICENT = {"max_abstain": 0.4}  # of the first release, which leaves the next ones something to gain


@dataclass(frozen=True)
class ReleaseSite:
    """A pipeline, its home and what was made there.

    Attributes:
        location: the code location.
        made: digests by artifact (`first`, `second`, `third`) and stage.
    """

    location: Location
    made: Mapping[str, Mapping[str, Digest]]

    @property
    def store(self) -> Store:
        return self.location.store

    @property
    def registry(self) -> Registry:
        return Registry.of_store(self.store)

    def declared(self, **sections: Any) -> "ReleaseSite":
        """Return the site with a pipeline file of other sections."""
        path = write_pipeline(
            self.location.pipeline.path, name=NAME, **{"train": LEARNING, "gates": _GATES, **sections}
        )
        return replace(self, location=replace(self.location, pipeline=pipelines.load(path)))

    def with_a_new_task_set(self) -> "ReleaseSite":
        """Return the site with version 2 of the task set, which holds one row more."""
        sets = self.location.pipeline.file.eval_sets.model_dump(mode="json")
        sets["task"]["version"] = "v2"
        gold = self.location.pipeline.path.parent / sets["task"]["file"]
        gold.write_text(gold.read_text("utf-8") + f"g30,please help {WORDS[0]} number 9999,{LABELS[0]}\n", "utf-8")
        return self.declared(eval_sets=sets)

    def run(self, *stages: str, week: str = NEXT_WEEK) -> dg.ExecuteInProcessResult:
        """Materialise some assets alone."""
        return self.location.run(*stages, week=week)

    def decide(self, move: str, **config: Any) -> dg.ExecuteInProcessResult:
        """Materialise the asset of a move alone, as the launchpad does."""
        key = dg.AssetKey([NAME, move])
        return self.location.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=self.location.instance,
            asset_selection=[key],
            run_config={"ops": {"__".join(key.path): {"config": WHO | config}}},
            raise_on_error=False,
        )

    def promote(self, which: str, to: str) -> dg.ExecuteInProcessResult:
        expect = {str(stage): pointer.generation for stage, pointer in self.registry.pointers(NAME).items()}[to]
        return self.decide("promotion", artifact=self.made[which]["export"], to=to, expect=expect)

    def point(self, which: str, *stages: str) -> None:
        """Let assets of the second week hold what was made for `which`."""
        for stage in stages:
            self.point_at(stage, self.made[which][stage])

    def point_at(self, stage: str, tree: Digest) -> None:
        """Let the asset of a stage hold a tree, whoever made it."""
        run = f"somebody's run {secrets.token_hex(4)}"
        self.store.pointers.put(asset_name(self.location.key(stage)), NEXT_WEEK, run, 0, tree)

    def edited(self, tree: Digest, file: str, edit: Callable[[bytes], bytes]) -> Digest:
        """Store a tree with one file edited, and everything about it well formed."""
        with TemporaryDirectory() as name:
            folder = Path(name) / "tree"
            self.store.trees.checkout(tree, folder)
            content = edit((folder / file).read_bytes())
            (folder / file).unlink()  # a link to the very bytes that the store keeps
            (folder / file).write_bytes(content)
            return self.store.trees.put(folder)


def build_release_site(folder: Path) -> dict[str, dict[str, Digest]]:
    """Run two weeks and one of them once more; the first is in production, the others were gated against it."""
    build_tiny_pipeline(folder / "pipeline", name=NAME)
    with opened(folder, {}) as site:
        outputs = {"first": _week(site.declared(abstention=_RETICENT), WEEK)}
        first = replace(site, made=outputs).promote("first", "production")
        assert first.success, refusal(first)
        outputs["third"] = _week(site.declared(train={**LEARNING, "max_steps": 90}), NEXT_WEEK)
        outputs["second"] = _week(site.declared(), NEXT_WEEK)
        assert [entry.stage for entry in site.registry.entries(NAME)] == ["production", "candidate", "candidate"]
    return outputs


def _week(site: ReleaseSite, week: str) -> dict[str, Digest]:
    result = site.run(*ALL_STAGES, week=week)
    assert result.success, refusal(result)
    return {stage: site.location.digest(result, stage) for stage in ALL_STAGES}


@contextmanager
def opened(folder: Path, made: Mapping[str, Mapping[str, Digest]]) -> Iterator[ReleaseSite]:
    """Open a site in an instance of its own."""
    path = write_pipeline(folder / "pipeline" / "pipeline.yaml", name=NAME, train=LEARNING, gates=_GATES)
    workbench = Workbench(Home(folder / "home"))
    with dg.DagsterInstance.ephemeral() as instance:
        yield ReleaseSite(Location(pipelines.load(path), workbench, instance), made)
        workbench.store.close()


@contextmanager
def copied(site: Path, folder: Path, made: Mapping[str, Mapping[str, Digest]]) -> Iterator[ReleaseSite]:
    """Open a copy of a closed site."""
    shutil.copytree(site, folder, dirs_exist_ok=True)
    with opened(folder, made) as copy:
        yield copy


def refusal(result: Result) -> tuple[str, str]:
    """Return the class of the error that a run was refused with, and its one line."""
    data = failure(result).step_failure_data.user_failure_data
    assert data is not None, failure(result).step_failure_data.error
    assert data.description is not None
    assert "\n" not in data.description
    return str(data.metadata["error"].value), data.description


def artifact_file(store: Store, tree: Digest, name: str) -> Digest:
    """Return the digest of one file of a tree."""
    return parse({entry.path: entry.sha256 for entry in store.trees.entries(tree)}[name])
