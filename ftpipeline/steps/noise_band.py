"""Step `noise_band`: how far trainings of one manifest move with the seed alone, in scores, classes and curves.

What it finds is stored by manifest family. The gate takes the scores for the noise under which a gain means nothing;
the guard takes the drift from the base model, step by step, for what healthy trainings do.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest, canonical_json, parse, parse_json
from ftpipeline.errors import CanonicalFormError, InputError
from ftpipeline.records import Facts, step
from ftpipeline.schema import ROLES
from ftpipeline.steps.evaluate import REPORT_FILE
from ftpipeline.steps.gate_arithmetic import noise_band as band_of
from ftpipeline.steps.gate_arithmetic import plain
from ftpipeline.steps.metrics import LabelCounts
from ftpipeline.steps.train_output import EVALUATIONS, METRICS

BAND_FILE = "band.json"
BAND_TYPE = "ftpipeline/noise_band/v1"

Curve = Mapping[int, float]
"""Optimizer step to value."""


@dataclass(frozen=True)
class SeedResult:
    """What was measured of one training.

    Attributes:
        seed: what alone differs between the trainings of a band.
        loss: training loss in nats, of every step.
        kl: drift from the base model in nats per token, where it was measured.
        scores: score by role, of the exported artifact.
        classes: F1 by role and expected answer.
        eval_sets: digest of the eval set by role.
    """

    seed: int
    loss: Curve
    kl: Curve
    scores: Mapping[str, float]
    classes: Mapping[str, Mapping[str, float]]
    eval_sets: Mapping[str, Digest]


@step("noise_band", code_version="1")
def noise_band(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Write `band.json`.

    Args:
        inputs: for every seed, `training_<seed>`, an output of `train`, and `<role>_<seed>`, outputs of `evaluate`.
        params: `family`, the digest of the manifest family, and `seeds`, at least two.
        out: receives the band.

    Returns:
        `family`, `seeds`, `scores` (a row a role), `loss` and `kl`.

    Raises:
        InputError: the seeds are fewer than two or stand twice, or a result cannot be read or is of another eval set.
    """
    family, seeds = parse(params["family"]), list(params["seeds"])
    if len(seeds) < 2 or len(set(seeds)) != len(seeds):
        raise InputError(f"noise band: seeds are {seeds}; give at least two, each once")
    band = summarise([_read(inputs, seed) for seed in seeds])
    (out / BAND_FILE).write_bytes(canonical_json({"type": BAND_TYPE, "family": family, **band}))
    scores = [{"role": role, **_words(summary)} for role, summary in band["roles"].items()]
    return {"family": family, "seeds": seeds, "scores": scores, "loss": band["loss"], "kl": band["kl"]}


def summarise(results: Sequence[SeedResult]) -> dict[str, Any]:
    """Return the band of at least two trainings as JSON values.

    Returns:
        `seeds`; `roles`: by role, the score of each seed, their mean, and spread and width as decimal text; `classes`:
        by role and answer, mean and spread of F1; `loss`: lowest, mean and highest loss at each step that all seeds
        reached; `kl`: the drift of each seed at each step where all measured it, steps empty where none did.

    Raises:
        InputError: the trainings were measured on different eval sets or classes, or share no step.
    """
    first = results[0]
    for other in results[1:]:
        if other.eval_sets != first.eval_sets or _answers(other) != _answers(first):
            raise InputError(f"noise band: seeds {first.seed} and {other.seed} differ in eval set; score both on one")
    loss_steps, kl_steps = (_common([getattr(result, name) for result in results]) for name in ("loss", "kl"))
    if not loss_steps:
        raise InputError("noise band: the trainings have no step in common; train every seed to its end")
    losses = [[result.loss[step] for result in results] for step in loss_steps]
    return {
        "seeds": [result.seed for result in results],
        "roles": {role: _scores([result.scores[role] for result in results]) for role in ROLES},
        "classes": {
            role: {label: _class([result.classes[role][label] for result in results]) for label in first.classes[role]}
            for role in ROLES
        },
        "loss": {
            "steps": loss_steps,
            "lower": [min(values) for values in losses],
            "mean": [statistics.fmean(values) for values in losses],
            "upper": [max(values) for values in losses],
        },
        "kl": {"steps": kl_steps, "seeds": [[result.kl[step] for step in kl_steps] for result in results]},
    }


def _answers(result: SeedResult) -> Mapping[str, frozenset[str]]:
    return {role: frozenset(classes) for role, classes in result.classes.items()}


def _common(curves: Sequence[Curve]) -> list[int]:
    return sorted(set.intersection(*map(set, curves)))


def _scores(scores: Sequence[float]) -> dict[str, Any]:
    band = band_of(scores)
    spread, width = plain(band.spread), plain(band.width)
    return {"scores": list(scores), "mean": statistics.fmean(scores), "spread": spread, "width": width}


def _class(values: Sequence[float]) -> dict[str, float]:
    return {"mean": statistics.fmean(values), "spread": max(values) - min(values)}


def _words(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {**summary, "scores": ", ".join(f"{score:.4f}" for score in summary["scores"])}


def _read(inputs: Mapping[str, Path], seed: int) -> SeedResult:
    try:
        reports = {role: _report(inputs[f"{role}_{seed}"] / REPORT_FILE) for role in ROLES}
        training = inputs[f"training_{seed}"]
        return SeedResult(
            seed=seed,
            loss=_curve(training / METRICS, "loss"),
            kl=_curve(training / EVALUATIONS, "kl"),
            scores={role: report["score"] for role, report in reports.items()},
            classes={role: _f1(report["per_label"]) for role, report in reports.items()},
            eval_sets={role: parse(report["eval_set"]["digest"]) for role, report in reports.items()},
        )
    except (OSError, KeyError, TypeError, ValueError, CanonicalFormError) as error:
        raise InputError(
            f"noise band: results of seed {seed} cannot be read ({error!r}); run that seed again"
        ) from error


def _report(path: Path) -> dict[str, Any]:
    return dict(parse_json(path.read_bytes()))


def _f1(per_label: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Return the F1 of the answers that the set expects."""
    counts = {label: LabelCounts(**values) for label, values in sorted(per_label.items())}
    return {label: count.f1 for label, count in counts.items() if count.tp + count.fn}


def _curve(path: Path, name: str) -> Curve:
    """Return the points of a JSONL file that hold `name`; a file that was never written has none."""
    if name != "loss" and not path.is_file():
        return {}
    points = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    curve = {point["step"]: float(point[name]) for point in points if name in point}
    if not all(map(math.isfinite, curve.values())):
        raise ValueError(f"{path.name} holds a {name} that is not finite")
    return curve
