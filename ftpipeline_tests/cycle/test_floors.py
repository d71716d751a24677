"""Thresholds against eval sets and noise band before training, and the band that the gate of a family takes."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle import bindings
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.floors import family_of, find_band, keep_band
from ftpipeline.cycle.model import build_manifest
from ftpipeline.cycle.stages import BY_NAME, run_stage
from ftpipeline.digest import Digest, canonical_json, of_bytes
from ftpipeline.errors import QuarantinedError, ThresholdError, UnknownNameError
from ftpipeline.records import RunContext, StepResult
from ftpipeline.schema import ROLES
from ftpipeline.steps.noise_band import BAND_FILE, BAND_TYPE
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline, write_pipeline

GATES = {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 0.5, "safety_max_drop": 1.0}
BEFORE_MANIFEST = ("base_model", "eval_task", "eval_regression", "eval_safety", "snapshot", "curate", "split")


@dataclass
class Heard:
    """Keeps what steps say."""

    lines: list[str] = field(default_factory=list)

    def started(self, step: str) -> None: ...

    def progress(self, step: str, done: int, total: int, note: str = "") -> None: ...

    def said(self, step: str, level: str, text: str) -> None:
        self.lines.append(f"{step}: {level}: {text}")

    def finished(self, result: StepResult) -> None: ...


@dataclass
class Site:
    """A tiny pipeline whose data is made."""

    file: Path
    store: Store
    outputs: dict[str, Digest] = field(default_factory=dict)
    heard: Heard = field(default_factory=Heard)
    run: RunContext = field(default_factory=lambda: RunContext("run", "tiny", date.fromisoformat(WEEK)))

    def cycle(self, **gates: float) -> Cycle:
        write_pipeline(self.file, gates={**GATES, **gates})
        return Cycle(pipelines.load(self.file), self.store, self.heard, bindings.SUBPROCESS_LAUNCHER)

    def stage(self, name: str, **gates: float) -> StepResult:
        inputs = {needed: self.outputs[needed] for needed in BY_NAME[name].after}
        return run_stage(self.cycle(**gates), BY_NAME[name], self.run, inputs)

    def family(self) -> Digest:
        return family_of(build_manifest(self.cycle(), self.run, self.outputs))

    def band(self, folder: Path, **changes: Any) -> Digest:
        """Keep a noise band of the family: the task scores of three seeds spread, the others do not."""
        scores = {"task": [0.7, 0.75, 0.8], "regression": [0.9, 0.9, 0.9], "safety": [0.5, 0.5, 0.5]}
        document = {"type": BAND_TYPE, "roles": {role: {"scores": scores[role]} for role in ROLES}, **changes}
        (folder / BAND_FILE).write_bytes(canonical_json(document))
        tree = self.store.trees.put(folder)
        keep_band(self.store, self.family(), "run", tree)
        return tree


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The data of a week, made once."""
    folder = tmp_path_factory.mktemp("floors")
    file = build_tiny_pipeline(folder / "pipeline")
    with closing(Home(folder / "home").open()) as store:
        site = Site(file, store)
        for name in BEFORE_MANIFEST:
            site.outputs[name] = site.stage(name).output
        yield site


@pytest.fixture
def site(made: Site) -> Site:
    made.heard.lines.clear()
    return made


def test_a_gain_below_one_example_is_refused_before_the_manifest_stands(site: Site) -> None:
    before = site.store.results.of_step("manifest")
    with pytest.raises(ThresholdError, match=r"threshold 0\.033 is below one example of n = 30"):
        site.stage("manifest", task_min_gain_vs_prod=0.033)
    assert site.store.results.of_step("manifest") == before


def test_usable_thresholds_write_the_manifest_and_coarse_drops_are_warned_of(site: Site) -> None:
    site.stage("manifest", task_min_gain_vs_prod=0.3)
    assert site.heard.lines == []
    site.stage("manifest", regression_max_drop=0.01, safety_max_drop=0.0)
    warned = "manifest: warning: regression: threshold 0.01 is below one example of n = 30 (0.03333)"
    assert site.heard.lines == [warned]


def test_a_measured_band_refuses_what_is_within_it_for_the_whole_family(site: Site, tmp_path: Path) -> None:
    assert find_band(site.store, of_bytes(b"another family")) is None
    tree = site.band(tmp_path)
    with pytest.raises(ThresholdError, match=r"below the noise band 0\.206476 \(seeds spread over 0\.1\)"):
        site.stage("manifest", task_min_gain_vs_prod=0.2)
    site.stage("manifest", task_min_gain_vs_prod=0.21)
    measured = find_band(site.store, site.family())
    assert measured is not None
    assert measured.params() == {"tree": tree, "seed_scores": measured.seed_scores}
    assert measured.seed_scores["task"] == [0.7, 0.75, 0.8]


def test_a_band_of_another_form_is_not_taken_for_one(site: Site, tmp_path: Path) -> None:
    site.band(tmp_path, type="ftpipeline/noise_band/v2")
    with pytest.raises(UnknownNameError, match="noise_band/v2"):
        find_band(site.store, site.family())


def test_a_quarantined_band_is_not_used(site: Site, tmp_path: Path) -> None:
    tree = site.band(tmp_path, family=of_bytes(b"family"))
    site.store.quarantine.mark(tree, of_bytes(b"receipt"), "a seed diverged")
    with pytest.raises(QuarantinedError):
        find_band(site.store, site.family())
