"""The checks that end a training: what each of them must see, and what none of them may take for a fault."""

import csv
import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import (
    FtpipelineError,
    GradientSpikeError,
    LossExplosionError,
    NoLearningError,
    NonFiniteError,
    OverfittingError,
    TrainingFailedError,
    ZeroLossError,
)
from ftpipeline.schema import Checks
from ftpipeline.steps.fail_fast import NORM_START, FailFast
from ftpipeline_tests.shared import shared

RATE = 1e-3
NOT_FINITE = [math.nan, math.inf, -math.inf]
sound = st.floats(0.5, 1.5)


def feed(checks: FailFast, losses: Sequence[float], norms: Sequence[float] | None = None) -> None:
    """Tell of steps numbered from 1."""
    for index, loss in enumerate(losses):
        checks.step(index + 1, loss, norms[index] if norms is not None else 1.0, RATE)


@given(st.lists(st.tuples(sound, sound), min_size=1, max_size=300))
def test_a_loss_and_a_gradient_norm_that_stay_where_they_are_never_end_a_training(
    points: list[tuple[float, float]],
) -> None:
    feed(FailFast(Checks()), [loss for loss, _ in points], [norm for _, norm in points])


@pytest.mark.parametrize("field", ["loss", "grad_norm", "learning_rate"])
@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_number_that_is_not_finite_ends_it_at_once(field: str, value: float) -> None:
    measured = {"loss": 1.0, "grad_norm": 1.0, "learning_rate": RATE} | {field: value}
    with pytest.raises(NonFiniteError, match=f"^{field} is {value} at step 1;") as caught:
        FailFast(Checks()).step(1, **measured)
    assert caught.value.evidence == {"kind": "non_finite", "step": 1, "value": str(value)}


@given(st.lists(sound, max_size=50))
def test_a_loss_of_exactly_zero_ends_it_at_once_and_a_tiny_one_does_not(losses: list[float]) -> None:
    checks = FailFast(Checks())
    feed(checks, losses)
    checks.step(len(losses) + 1, 5e-324, 1.0, RATE)
    with pytest.raises(ZeroLossError, match=f"exactly 0 at step {len(losses) + 2}"):
        checks.step(len(losses) + 2, 0.0, 1.0, RATE)


@given(st.lists(sound, min_size=NORM_START, max_size=200), st.floats(2.0, 1e4))
def test_a_gradient_norm_beyond_the_factor_is_a_spike_with_its_evidence(norms: list[float], factor: float) -> None:
    checks = FailFast(Checks(grad_norm_factor=factor))
    spike = 1.6 * factor
    with pytest.raises(GradientSpikeError) as caught:
        feed(checks, [1.0] * (len(norms) + 1), [*norms, spike])
    assert caught.value.evidence["kind"] == "gradient_spike"
    assert caught.value.evidence["step"] == len(norms) + 1
    assert caught.value.evidence["value"] == spike
    assert float(str(caught.value.evidence["limit"])) < spike


@given(st.floats(0.0, 1e12), st.integers(0, NORM_START - 1))
def test_the_first_gradient_norms_are_no_spikes(norm: float, before: int) -> None:
    feed(FailFast(Checks(grad_norm_factor=1.5)), [1.0] * (before + 1), [1.0] * before + [norm])


def test_a_norm_that_comes_back_to_where_the_training_began_is_no_spike() -> None:
    learned = [10.0] * NORM_START + [1e-4] * 200
    feed(FailFast(Checks()), [1.0] * 221, [*learned, 10.0])


@given(st.floats(1.0, 12.0), st.floats(3.01, 1e6))
def test_losses_that_stay_far_beyond_the_first_are_an_explosion_within_a_few_steps(first: float, times: float) -> None:
    with pytest.raises(LossExplosionError) as caught:
        feed(FailFast(Checks()), [first] + [first * times] * 49)
    assert caught.value.evidence["step"] in range(2, 20)


@given(st.floats(0.01, 5.0), st.integers(0, 49), st.floats(10.0, 1e6))
def test_a_single_odd_batch_is_no_explosion(usual: float, place: int, odd: float) -> None:
    losses = [usual] * 50
    losses[place] = odd
    feed(FailFast(Checks()), losses)


@given(st.integers(2, 120), st.floats(0.1, 10.0))
def test_a_loss_that_does_not_fall_by_the_declared_step_ends_it_there_and_not_before(steps: int, loss: float) -> None:
    checks = FailFast(Checks(no_learning_steps=steps))
    feed(checks, [loss] * (steps - 1))
    with pytest.raises(NoLearningError, match=f"within {steps} steps") as caught:
        checks.step(steps, loss, 1.0, RATE)
    assert caught.value.evidence["kind"] == "no_learning"


@given(st.integers(9, 200), st.floats(0.1, 10.0), st.floats(0.3, 0.9))
def test_a_loss_that_falls_steadily_is_learning(steps: int, first: float, rest: float) -> None:
    losses = [first * (1 - (1 - rest) * index / steps) for index in range(steps)]
    feed(FailFast(Checks(no_learning_steps=steps)), losses)


@given(st.randoms(use_true_random=False))
def test_noise_alone_is_hardly_ever_learning(random: object) -> None:
    losses = [1.0 + 0.5 * random.uniform(-1, 1) for _ in range(60)]  # type: ignore[attr-defined]
    losses[-20:] = [max(loss, 1.0) for loss in losses[-20:]]
    with pytest.raises(NoLearningError):
        feed(FailFast(Checks(no_learning_steps=60)), losses)


def overfit(checks: FailFast, val_losses: Sequence[float], *, falls: bool = True, first_epoch: float = 1.0) -> None:
    """Tell of an epoch of five steps before each evaluation."""
    step = 0
    for index, val_loss in enumerate(val_losses):
        for _ in range(5):
            step += 1
            checks.step(step, 1.0 / (index + 1) if falls else 1.0 + 0.01 * index, 1.0, RATE)
        checks.evaluation(step, first_epoch + index, val_loss)


def test_an_overfit_set_ends_it_by_the_third_evaluation_after_the_first_epoch() -> None:
    with pytest.raises(OverfittingError, match="at step 15 ") as caught:
        overfit(FailFast(Checks()), [1.0, 1.2, 1.4, 1.6])
    assert caught.value.evidence["value"] == 1.4


@pytest.mark.parametrize(
    "losses",
    [[1.4, 1.2, 1.0, 0.9], [1.0, 1.2, 1.1, 1.3], [1.0, 1.01, 1.02, 1.03], [0.001, 0.003, 0.006, 0.01]],
    ids=["falling", "not in a row", "hardly", "near zero"],
)
def test_a_validation_loss_that_does_not_keep_rising_beyond_noise_is_no_overfitting(losses: list[float]) -> None:
    overfit(FailFast(Checks()), losses)


def test_while_the_training_loss_rises_too_it_is_no_overfitting() -> None:
    overfit(FailFast(Checks()), [1.0, 1.2, 1.4, 1.6], falls=False)


def test_evaluations_within_the_first_epoch_do_not_count() -> None:
    overfit(FailFast(Checks()), [1.0, 1.2], first_epoch=0.0)
    checks = FailFast(Checks())
    for index in range(8):
        checks.step(index + 1, 1.0 / (index + 1), 1.0, RATE)
        checks.evaluation(index + 1, index / 8, 1.0 + index)


def test_without_the_declaration_overfitting_and_no_learning_are_not_checked() -> None:
    overfit(FailFast(Checks(overfitting_evaluations=None)), [1.0, 2.0, 3.0, 4.0, 5.0])
    feed(FailFast(Checks(no_learning_steps=None)), [1.0] * 500)


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_validation_loss_that_is_not_finite_ends_it_at_once(value: float) -> None:
    with pytest.raises(NonFiniteError, match="validation loss"):
        FailFast(Checks()).evaluation(4, 0.5, value)


@given(
    st.lists(st.tuples(st.floats(0.0, 40.0), st.floats(0.0, 1e5), st.floats(0.5, 3.0)), min_size=1, max_size=80),
    st.integers(0, 80),
)
def test_replayed_measurements_give_the_answer_of_the_run_that_was_never_stopped(
    points: list[tuple[float, float, float]], stop: int
) -> None:
    checks = Checks(grad_norm_factor=50.0, no_learning_steps=30)
    assert verdict(FailFast(checks), points, ()) == verdict(FailFast(checks), points[stop:], points[:stop])


def verdict(
    checks: FailFast, points: Sequence[tuple[float, float, float]], replayed: Sequence[tuple[float, float, float]]
) -> object:
    """Return how a run ends: its error with step and evidence, or None."""
    try:
        for step, (loss, norm, val_loss) in enumerate([*replayed, *points], start=1):
            checks.step(step, loss, norm, RATE)
            if step % 10 == 0:
                checks.evaluation(step, step / 5, val_loss)
    except TrainingFailedError as error:
        return type(error), str(error), error.evidence
    return None


REAL_CURVES = ("mngpt_*.csv", "tiny_*.csv")


@pytest.mark.parametrize("pattern", REAL_CURVES)
def test_real_trainings_that_did_not_blow_up_are_never_ended(pattern: str) -> None:
    paths = sorted(shared("curves").glob(pattern))
    assert paths
    for path in paths:
        if "lrbug" not in path.name:
            replay(path.read_text(encoding="utf-8").splitlines(), FailFast(Checks()))


def replay(lines: Sequence[str], checks: FailFast) -> None:
    for row in csv.DictReader(lines):
        checks.step(int(row["step"]), float(row["loss"]), float(row["grad_norm"] or 1.0), RATE)
        if row["val_loss"]:
            checks.evaluation(int(row["step"]), 2.0, float(row["val_loss"]))


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda checks: checks.step(1, math.nan, 1.0, RATE), NonFiniteError),
        (lambda checks: checks.step(1, 0.0, 1.0, RATE), ZeroLossError),
        (lambda checks: feed(checks, [1.0, *[9.0] * 20]), LossExplosionError),
    ],
)
def test_every_message_is_one_line_with_the_step_and_what_to_do(
    spoil: Callable[[FailFast], None], error: type[FtpipelineError]
) -> None:
    with pytest.raises(error, match=r"at step \d+.*; ") as caught:
        spoil(FailFast(Checks()))
    assert "\n" not in str(caught.value)
