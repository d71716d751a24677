"""What is said of a replay by what it measured: a divergence, none, or nothing."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.cycle.replay_judge import Judgement, judge
from ftpipeline.digest import canonical_json
from ftpipeline.guard.verdicts import Stage
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.trees import Trees
from ftpipeline_tests.cycle.fleet_world import opened, point

STEPS = 220
Rows = Sequence[dict[str, Any]]


def judged(folder: Path, points: Rows, evaluations: Rows = (), ended: str | None = None) -> Judgement:
    """Judge a replay that measured points and evaluations."""
    out, trees = folder / "out", Trees(LocalBlobs(folder / "blobs"))
    out.mkdir()
    for name, rows in (("metrics", points), ("evaluations", evaluations)):
        (out / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said = None if ended is None else {"error": ended, "message": "it did"}
    (out / "replay.json").write_bytes(canonical_json({"ended": said}))
    return judge(trees, trees.put(out), opened("W"), None)


def healthy(steps: int = STEPS) -> list[dict[str, Any]]:
    return [point(step) for step in range(1, steps + 1)]


def test_a_healthy_replay_has_not_diverged(tmp_path: Path) -> None:
    made = judged(tmp_path, healthy())
    assert (made.detection.stage, made.diverged) == (Stage.HEALTHY, False)


def test_what_the_detector_confirms_has_diverged(tmp_path: Path) -> None:
    made = judged(tmp_path, [*healthy(), *(point(STEPS + step, 4.0 + step / 10) for step in range(1, 100))])
    assert (made.detection.stage, made.diverged) == (Stage.CONFIRMED, True)


def test_an_alarm_that_stands_at_the_end_decides_nothing(tmp_path: Path) -> None:
    made = judged(tmp_path, [*healthy(), *(point(STEPS + step, 4.0 + step / 10) for step in range(1, 8))])
    assert (made.detection.stage, made.diverged) == (Stage.SUSPECT, None)


def test_evaluations_are_judged_among_the_steps(tmp_path: Path) -> None:
    falls_then_rises = [2.0, 1.8, 1.6, 1.9, 2.2, 2.5, 2.8]
    measured = [
        {"step": 30 * (index + 1), "epoch": 0.0, "val_loss": loss, "scores": {}}
        for index, loss in enumerate(falls_then_rises)
    ]
    made = judged(tmp_path, healthy(), measured)
    assert made.diverged is not False
    assert {evidence.metric for evidence in made.detection.evidence} == {"val_loss"}


@pytest.mark.parametrize(
    ("ended", "diverged"),
    [
        ("NonFiniteError", True),
        ("LossExplosionError", True),
        ("GradientSpikeError", True),
        ("ZeroLossError", True),
        ("OverfittingError", True),
        ("NoLearningError", False),
    ],
)
def test_the_check_that_ended_it_says_whether_it_diverged(tmp_path: Path, ended: str, diverged: bool) -> None:
    assert judged(tmp_path, healthy(40), ended=ended).diverged is diverged
