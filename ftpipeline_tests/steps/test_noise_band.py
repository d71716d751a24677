"""The noise band of written results: scores, classes and curves of all seeds, and what cannot be one band."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import of_bytes, parse_json
from ftpipeline.errors import InputError
from ftpipeline.guard.config import Envelope
from ftpipeline.schema import ROLES
from ftpipeline.steps.noise_band import SeedResult, noise_band, summarise

FAMILY, SET = of_bytes(b"family"), of_bytes(b"set")
SEEDS = (7, 8, 9)
STEPS = 3


class Results:
    """Folders as the steps train and evaluate leave them, one set a seed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inputs: dict[str, Path] = {}
        for position, seed in enumerate(SEEDS):
            self.add(seed, position)

    def add(self, seed: int, position: int) -> None:
        losses = [{"step": step, "loss": 2.0 - step / 10 + position / 100} for step in range(1, STEPS + 1)]
        drifts = [{"step": step, "val_loss": 1.0, "kl": step / 10 + position / 10} for step in (2, 3)]
        self.write(f"training_{seed}", {"metrics.jsonl": losses, "evaluations.jsonl": drifts})
        for role in ROLES:
            self.write(f"{role}_{seed}", {"report.json": report(0.7 + position / 100)})

    def write(self, name: str, files: Mapping[str, Any]) -> None:
        self.inputs[name] = self.folder / name
        self.inputs[name].mkdir(exist_ok=True)
        for file, content in files.items():
            lines = content if isinstance(content, list) else [content]
            text = "\n".join(map(json.dumps, lines))
            (self.inputs[name] / file).write_text(text, encoding="utf-8")

    def run(self, seeds: Sequence[int] = SEEDS) -> tuple[dict[str, Any], dict[str, Any]]:
        out = self.folder / "out"
        out.mkdir()
        facts = noise_band(self.inputs, {"family": FAMILY, "seeds": list(seeds)}, out)
        return facts, parse_json((out / "band.json").read_bytes())


def report(score: float, eval_set: str = SET, tp: int = 3) -> dict[str, Any]:
    per_label = {"billing": {"tp": tp, "fp": 1, "fn": 1}, "abstain": {"tp": 0, "fp": 1, "fn": 0}}
    return {"score": score, "eval_set": {"digest": eval_set}, "per_label": per_label}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path)


def test_the_band_holds_scores_classes_and_curves_of_every_seed(results: Results) -> None:
    results.write("task_9", {"report.json": report(0.72, tp=1)})
    facts, band = results.run()
    assert (band["family"], band["seeds"]) == (FAMILY, list(SEEDS))
    assert band["roles"]["task"] == {"scores": [0.7, 0.71, 0.72], "mean": 0.71, "spread": "0.02", "width": "0.041296"}
    assert band["classes"]["task"] == {"billing": {"mean": pytest.approx(2 / 3), "spread": 0.25}}
    assert band["loss"]["steps"] == [1, 2, 3]
    assert (band["loss"]["lower"][0], band["loss"]["upper"][0]) == (1.9, 1.92)
    assert band["kl"]["steps"] == [2, 3]
    assert facts["scores"][0]["scores"] == "0.7000, 0.7100, 0.7200"


def test_the_drift_is_what_the_envelope_of_the_guard_is_made_of(results: Results) -> None:
    drift = results.run()[1]["kl"]
    envelope = Envelope.of_runs(dict(zip(drift["steps"], values, strict=True)) for values in drift["seeds"])
    assert envelope.steps == (2, 3)
    assert envelope.upper == pytest.approx((1.5 * 0.4, 1.5 * 0.5))


def test_trainings_that_measured_no_drift_have_none(results: Results) -> None:
    for seed in SEEDS:
        (results.inputs[f"training_{seed}"] / "evaluations.jsonl").unlink()
    assert results.run()[1]["kl"] == {"steps": [], "seeds": [[], [], []]}


def test_a_curve_has_the_steps_that_every_seed_measured(results: Results) -> None:
    short = {"metrics.jsonl": [{"step": 1, "loss": 2.0}], "evaluations.jsonl": [{"step": 3, "kl": 1}]}
    results.write("training_8", short)
    band = results.run()[1]
    assert (band["loss"]["steps"], band["kl"]["steps"]) == ([1], [3])


@pytest.mark.parametrize("seeds", [[], [7], [7, 7]])
def test_one_seed_is_no_band(results: Results, seeds: list[int]) -> None:
    with pytest.raises(InputError, match="give at least two, each once"):
        results.run(seeds)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("task_8", {"report.json": report(0.7, of_bytes(b"another set"))}),
        ("task_8", {"report.json": {**report(0.7), "per_label": {"login": {"tp": 1, "fp": 0, "fn": 0}}}}),
        ("training_8", {"metrics.jsonl": [{"step": 9, "loss": 1.0}]}),
        ("training_8", {"metrics.jsonl": [{"step": 1, "loss": float("nan")}]}),
        ("training_8", {"metrics.jsonl": [{"step": 1, "loss": {"non_finite": "nan"}}]}),
        ("training_8", {"evaluations.jsonl": [{"step": 1, "kl": float("inf")}]}),
        ("safety_8", {"report.json": {"score": 0.7}}),
        ("safety_8", {"report.json": report(70.0)}),
    ],
)
def test_what_cannot_be_compared_or_read_is_no_band(results: Results, name: str, files: dict[str, Any]) -> None:
    results.write(name, files)
    with pytest.raises(InputError):
        results.run()


def test_a_missing_metrics_file_is_named(results: Results) -> None:
    (results.inputs["training_7"] / "metrics.jsonl").unlink()
    with pytest.raises(InputError, match="results of seed 7 cannot be read"):
        results.run()


curves = st.dictionaries(st.integers(1, 20), st.floats(0, 10), min_size=1)
ONE = SeedResult(
    1, {1: 1.0}, {}, dict.fromkeys(ROLES, 0.5), {role: {"billing": 0.5} for role in ROLES}, dict.fromkeys(ROLES, SET)
)


@given(st.lists(curves, min_size=2, max_size=4))
def test_every_seed_lies_within_the_envelope_at_every_step(losses: list[dict[int, float]]) -> None:
    shared = [{**loss, 21: 1.0} for loss in losses]
    band = summarise([replace(ONE, seed=seed, loss=loss) for seed, loss in enumerate(shared)])["loss"]
    assert 21 in band["steps"]
    for step, lower, mean, upper in zip(*(band[name] for name in ("steps", "lower", "mean", "upper")), strict=True):
        values = [loss[step] for loss in shared]
        assert lower == min(values) <= mean + 1e-9
        assert upper == max(values) >= mean - 1e-9
