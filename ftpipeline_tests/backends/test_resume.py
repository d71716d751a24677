"""A training that is cut short and goes on makes the bytes of one that was never interrupted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.backends import checkpoint
from ftpipeline.backends.protocol import Message
from ftpipeline.errors import CheckpointError, WorkerError, WorkerInterruptedError
from ftpipeline_tests.backends.trainings import Attempt, Trainings
from ftpipeline_tests.tiny_model import build_tiny_split

SETTINGS: list[dict[str, Any]] = [
    {"max_steps": 18},
    {"max_steps": 16, "gradient_accumulation": 3, "evaluation_steps": 4},
    {"max_steps": None, "epochs": 4, "gradient_accumulation": 2, "scheduler": "linear"},
]
"""Of an epoch's 5 batches of 32 rows, none divides the checkpoints' 5 steps evenly in the last two."""


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory, base_model: Path) -> Trainings:
    folder = tmp_path_factory.mktemp("trainings")
    return Trainings(folder, base_model, build_tiny_split(folder / "split", rows=56))


def step_of(message: Message) -> int:
    return int(message.get("metric", {}).get("step", 0))


@pytest.mark.parametrize("settings", SETTINGS)
def test_from_every_checkpoint_the_output_is_that_of_the_uninterrupted_training(
    trainings: Trainings, settings: dict[str, Any]
) -> None:
    whole = trainings.run(**settings)
    last = whole.of("metric")[-1]["step"]
    assert [checkpoint.verify(folder).step for folder in whole.checkpoints] == [*range(5, last, 5), last]
    for folder in whole.checkpoints:
        step = checkpoint.verify(folder).step
        resumed = trainings.run(resume=folder, **settings)
        assert resumed.files == whole.files
        assert [metric["step"] for metric in resumed.of("metric")] == list(range(step + 1, last + 1))


def test_an_evaluation_leaves_the_adapter_and_the_measurements_as_they_would_be(trainings: Trainings) -> None:
    without = trainings.run(max_steps=12)
    with_them = trainings.run(max_steps=12, evaluation_steps=3)
    differing = {name for name, data in without.files.items() if with_them.files[name] != data}
    assert differing == {"evaluations.jsonl"}
    records = [json.loads(line) for line in with_them.files["evaluations.jsonl"].splitlines()]
    assert records == with_them.of("evaluation")
    assert [record["step"] for record in records] == [3, 6, 9, 12]
    assert all({"val_loss", "scores", "epoch"} <= set(record) for record in records)
    assert all(0.0 <= record["scores"]["macro_f1"] <= 1.0 for record in records)


def test_accumulated_batches_count_as_one_large_batch(trainings: Trainings) -> None:
    accumulated = trainings.run(max_steps=4, batch_size=2, gradient_accumulation=4).of("metric")
    large = trainings.run(max_steps=4, batch_size=8).of("metric")
    assert [(point["accumulation"], point["tokens"]) for point in accumulated] == [
        (4, point["tokens"]) for point in large
    ]
    for one, other in zip(accumulated, large, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=0.15)  # dropout draws differ
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=0.7)


def test_a_step_at_the_end_of_an_epoch_counts_the_batches_that_were_left(trainings: Trainings) -> None:
    points = trainings.run(max_steps=4, batch_size=8, gradient_accumulation=3).of("metric")
    assert [point["accumulation"] for point in points] == [3, 2, 3, 2]
    assert sum(point["tokens"] for point in points[:2]) == sum(point["tokens"] for point in points[2:])


PHASES: dict[str, tuple[Callable[[Message], bool], int]] = {
    "step": (lambda message: step_of(message) == 7, 7),
    "evaluation": (lambda message: step_of(message) == 8, 8),
    "saving": (lambda message: "checkpoint" in message and message["checkpoint"]["step"] == 10, 10),
    "final validation": (lambda message: "checkpoint" in message and message["checkpoint"]["step"] == 14, 14),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_signal_in_any_phase_keeps_the_step_that_was_made_and_the_next_attempt_goes_on_from_it(
    trainings: Trainings, phase: str
) -> None:
    settings: dict[str, Any] = {"max_steps": 14, "evaluation_steps": 4}
    whole, made = trainings.run(**settings), list[Attempt]()
    stop_at, step = PHASES[phase]
    with pytest.raises(WorkerInterruptedError, match=f"checkpoint of step {step} is kept"):
        trainings.run(stop_at=stop_at, made=made, **settings)
    (cut,) = made
    assert "train.json" not in cut.files
    assert checkpoint.verify(cut.checkpoints[-1]).step == step
    resumed = trainings.run(resume=cut.checkpoints[-1], **settings)
    assert resumed.files == whole.files
    told = [record["step"] for record in cut.of("evaluation") + resumed.of("evaluation")]
    assert told == [4, 8, 12]  # none is lost, and none is told twice


def test_a_signal_while_the_model_is_loaded_keeps_nothing_new(trainings: Trainings) -> None:
    made: list[Attempt] = []
    whole = trainings.run(max_steps=5)
    with pytest.raises(WorkerInterruptedError, match="checkpoint of step 5 is kept"):
        trainings.run(resume=whole.checkpoints[0], made=made, max_steps=5, stopped=True)
    with pytest.raises(WorkerInterruptedError, match="nothing is kept"):
        trainings.run(made=made, max_steps=5, stopped=True)
    assert [attempt.checkpoints for attempt in made] == [[], []]


@pytest.mark.parametrize("name", ["optimizer.pt", "rng_state.pth", "scheduler.pt", "adapter_model.safetensors"])
def test_without_one_of_its_files_a_checkpoint_is_refused_before_anything_is_loaded(
    trainings: Trainings, name: str
) -> None:
    folder = trainings.run(max_steps=6).checkpoints[0]
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        trainings.run(resume=folder, max_steps=6)


def test_a_checkpoint_of_another_seed_is_refused(trainings: Trainings) -> None:
    folder = trainings.run(max_steps=6).checkpoints[0]
    with pytest.raises(CheckpointError, match="other parameters"):
        trainings.run(resume=folder, max_steps=6, seed=8)


def test_a_disk_that_is_full_ends_the_training_and_leaves_no_half_checkpoint(
    trainings: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    made: list[Attempt] = []
    monkeypatch.setattr("ftpipeline.backends.checkpoint.complete", full)
    with pytest.raises(WorkerError, match="checkpoint-5 cannot be written"):
        trainings.run(made=made, max_steps=6)
    assert made[0].checkpoints == []


def test_without_anybody_who_keeps_checkpoints_none_is_written(trainings: Trainings) -> None:
    attempt = trainings.run(every=None, max_steps=6)
    assert [folder.name for folder in attempt.checkpoints] == ["checkpoint-6"]
