"""What the detector sees, what it must not see, and that it does not matter how the points arrive."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftpipeline.errors import InputError
from ftpipeline.guard.config import Config, Envelope
from ftpipeline.guard.detect import detect, detection, observe
from ftpipeline.guard.points import Event, EventKind, Point
from ftpipeline.guard.state import State
from ftpipeline.guard.verdicts import Detection, Evidence, EvidenceKind, Stage
from ftpipeline_tests.guard.curves import HEALTHY, Kind, curve, fleet, healthy_kl

NAN, INF = math.nan, math.inf

numbers = st.one_of(st.floats(0.1, 5), st.sampled_from([NAN, INF, -INF, 0.0, 1e300]))
maybe = st.none() | numbers
points = st.builds(
    Point,
    step=st.integers(0, 60),
    attempt=st.integers(1, 2),
    loss=maybe,
    grad_norm=maybe,
    val_loss=maybe,
    kl=maybe,
    scores=st.dictionaries(st.sampled_from(["a", "b"]), numbers),
)
events = st.lists(
    st.builds(Event, st.integers(0, 60), st.sampled_from(EventKind), st.sampled_from([None, 1])), max_size=3
)
# A warm-up that short sequences of points outlast, so that every rule has its say in them.
QUICK = Config(warm_up=10, window=4, suspect_steps=3, confirm_steps=8, kl_envelope=Envelope((0, 60), (0.5, 1.0)))


def run(losses: Sequence[float], start: int = 1) -> list[Point]:
    return [Point(step, loss=loss) for step, loss in enumerate(losses, start)]


def noisy(level: float, steps: int, seed: int = 0) -> list[float]:
    return [float(value) for value in np.random.default_rng(seed).normal(level, 0.02 * level, steps)]


def kinds(found: Detection) -> set[EvidenceKind]:
    return {item.kind for item in found.evidence}


@given(st.lists(points, max_size=80), st.lists(st.integers(0, 80)), events)
@settings(max_examples=150)
def test_any_cutting_into_chunks_gives_what_one_look_gives(
    seen: list[Point], cuts: list[int], declared: list[Event]
) -> None:
    whole, evidence = observe(State(), seen, QUICK, declared)
    state, found = State(), list[Evidence]()
    bounds = [0, *sorted(min(cut, len(seen)) for cut in cuts), len(seen)]
    for start, end in pairwise(bounds):
        state, new = observe(state, seen[start:end], QUICK, declared)
        state = State.from_json(json.loads(json.dumps(state.to_json(), allow_nan=False)))
        found += new
    assert repr(state) == repr(whole)  # by text, because a NaN that was seen does not equal itself
    assert repr(found) == repr(list(evidence))


@given(st.lists(points, max_size=60), events)
def test_a_verdict_is_strict_json_and_consistent(seen: list[Point], declared: list[Event]) -> None:
    found = detect(seen, QUICK, declared)
    json.dumps(found.to_json(), allow_nan=False)
    if found.onset_step is not None and found.detected_step is not None:
        assert found.onset_step <= found.detected_step
        assert found.last_good_step is None or found.last_good_step < found.onset_step
    assert (found.onset_step is None) == (found.detected_step is None)


def test_looking_does_not_change_the_state_that_was_given() -> None:
    state, _ = observe(State(), run(noisy(1.0, 50)))
    before = state.to_json()
    observe(state, run([NAN], start=51))
    assert state.to_json() == before


def test_the_state_does_not_grow() -> None:
    losses = noisy(1.0, 3000)
    sizes = [len(json.dumps(observe(State(), run(losses[:steps]))[0].to_json())) for steps in (200, 3000)]
    assert sizes[1] < 1.1 * sizes[0] < 6000


@pytest.mark.parametrize(
    "damage", [{"schema": "ftpipeline.detector_state/2"}, {"schema": None}, {"losses": 3}, {"evidence": [{}]}, {"x": 1}]
)
def test_a_state_of_another_form_is_refused(damage: dict[str, object]) -> None:
    document = State().to_json() | damage
    with pytest.raises(InputError, match="detect from the start"):
        State.from_json(document)


def test_five_steps_are_insufficient_and_never_healthy() -> None:
    assert detect(run(noisy(1.0, 5))).stage is Stage.INSUFFICIENT
    assert detect([]).stage is Stage.INSUFFICIENT


@pytest.mark.parametrize("value", [NAN, INF, -INF, 1e300])
@pytest.mark.parametrize("metric", ["loss", "grad_norm"])
def test_a_non_finite_value_in_a_job_of_five_steps_is_confirmed_at_once(metric: str, value: float) -> None:
    broken = Point(5, loss=value) if metric == "loss" else Point(5, loss=1.0, grad_norm=value)
    found = detect([*run(noisy(1.0, 4)), broken])
    assert (found.stage, found.onset_step, found.last_good_step) == (Stage.CONFIRMED, 5, 4)
    assert kinds(found) == {EvidenceKind.NON_FINITE}


def test_a_non_finite_validation_makes_a_job_suspect_until_a_finite_one() -> None:
    seen = [*run(noisy(1.0, 150)), Point(150, val_loss=NAN)]
    assert detect(seen).stage is Stage.SUSPECT
    assert detect([*seen, Point(151, val_loss=1.0)]).stage is Stage.HEALTHY


def test_a_short_job_that_blows_up_carries_evidence() -> None:
    found = detect(run([2.0, 1.9, 1.8, 9.0, 9.5]))
    assert found.stage is Stage.INSUFFICIENT
    assert kinds(found) == {EvidenceKind.LOSS_SPIKE}


def test_a_job_is_healthy_once_its_warm_up_is_over() -> None:
    losses = noisy(1.0, 150)
    assert detect(run(losses[:99])).stage is Stage.INSUFFICIENT
    healthy = detect(run(losses))
    assert (healthy.stage, healthy.evidence, healthy.last_good_step) == (Stage.HEALTHY, (), 150)


def test_a_single_bad_batch_is_no_evidence() -> None:
    losses = noisy(1.0, 300)
    losses[200] = 30.0
    assert not detect(run(losses)).evidence


def test_a_run_that_climbs_step_by_step_is_suspect_within_ten_steps() -> None:
    found = detect(run(noisy(1.4, 200) + [1.4 * 1.08**step for step in range(1, 60)]))
    assert found.stage is Stage.CONFIRMED
    assert found.detected_step is not None
    assert found.detected_step <= 210
    assert found.evidence[0].kind is EvidenceKind.LOSS_SPIKE


def test_a_doubled_loss_is_confirmed_sooner_than_a_mild_one_and_that_sooner_than_a_level_one() -> None:
    def confirmed(after: list[float]) -> int:
        _, evidence = observe(State(), run(noisy(1.0, 300) + after))
        return next(item.step for item in evidence if item.level is Stage.CONFIRMED)

    doubled = confirmed(noisy(3.0, 300, seed=1))
    rising = confirmed([1.0 + step / 150 for step in range(300)])
    level = confirmed(noisy(1.6, 300, seed=1))
    assert doubled < rising < level


def test_a_spike_that_recovers_is_never_confirmed() -> None:
    spike = [1.0 + 8 * math.exp(-step / 15) for step in range(300)]
    found = detect(run(noisy(1.0, 300) + spike))
    assert found.stage is Stage.HEALTHY
    assert {item.level for item in found.evidence} == {Stage.SUSPECT}


def test_the_last_good_step_lies_before_a_slow_drift_although_the_alarm_is_late() -> None:
    drift = [1.0 + step / 800 for step in range(600)]
    noise = noisy(1.0, 900)
    found = detect(run([value * level for value, level in zip(noise, [1.0] * 300 + drift, strict=True)]))
    assert found.stage is Stage.CONFIRMED
    assert found.last_good_step is not None
    assert found.last_good_step <= 300
    assert found.detected_step is not None
    assert found.detected_step > 310


@pytest.mark.parametrize("floor", [0.0, 1e-5])
def test_a_collapse_to_zero_is_confirmed_and_a_slow_approach_is_not(floor: float) -> None:
    collapsed = detect(run(noisy(1.0, 150) + [floor] * 20))
    assert collapsed.stage is Stage.CONFIRMED
    assert EvidenceKind.COLLAPSE_TO_ZERO in kinds(collapsed)
    assert not detect(run([math.exp(-step / 100) for step in range(2000)])).evidence


def test_a_gradient_norm_that_stays_a_multiple_makes_a_job_suspect_and_no_more() -> None:
    norms = noisy(1.0, 200) + noisy(20.0, 100)
    found = detect([Point(step, loss=1.0, grad_norm=norm) for step, norm in enumerate(norms, 1)])
    assert {(item.kind, item.level) for item in found.evidence} == {(EvidenceKind.GRAD_NORM_SPIKE, Stage.SUSPECT)}


def test_validation_that_rises_while_training_falls_is_confirmed() -> None:
    losses = [2 * math.exp(-step / 500) for step in range(1, 601)]
    rising = [1.0 - step / 1000 if step < 300 else 0.7 + (step - 300) / 500 for step in range(1, 601)]
    seen = [
        Point(step, loss=loss, val_loss=rising[step - 1] if step % 25 == 0 else None)
        for step, loss in enumerate(losses, 1)
    ]
    found = detect(seen)
    assert found.stage is Stage.CONFIRMED
    assert kinds(found) == {EvidenceKind.VALIDATION_RISE}
    assert found.last_good_step is not None
    assert found.last_good_step < 300 <= (found.onset_step or 0)


def test_a_divergence_from_the_reference_is_compared_with_healthy_seeds_at_the_same_step() -> None:
    config = Config(kl_envelope=Envelope((10, 40, 100, 1000), (0.02, 0.05, 0.1, 0.2)))
    losses = run(noisy(1.0, 150))
    hot = [Point(step, kl=0.09) for step in (10, 40)]
    healthy = [Point(step, kl=0.09) for step in (100, 110)]
    assert kinds(detect([*hot, *losses], config)) == {EvidenceKind.KL_ENVELOPE}
    assert not detect([*losses, *healthy], config).evidence
    assert not detect([*losses, *hot]).evidence  # without an envelope, nothing can be said


def test_an_envelope_is_linear_between_its_steps_and_silent_outside() -> None:
    envelope = Envelope.of_runs([{10: 1.0, 20: 2.0, 30: 9.0}, {10: 2.0, 20: 4.0}], slack=2.0)
    assert [envelope.at(step) for step in (9, 10, 15, 20, 21)] == [None, 4.0, 6.0, 8.0, None]
    with pytest.raises(InputError, match="measure more seeds"):
        Envelope.of_runs([{10: 1.0}])


def test_a_score_that_falls_below_its_best_is_confirmed_and_one_low_evaluation_is_nothing() -> None:
    def scored(values: Sequence[float]) -> Detection:
        evaluations = [Point(150 + step, scores={"score/task": value}) for step, value in enumerate(values)]
        return detect([*run(noisy(1.0, 150)), *evaluations])

    assert not scored([0.8, 0.7, 0.8]).evidence
    found = scored([0.8, 0.81, 0.7, 0.7, 0.7])
    assert (found.stage, kinds(found)) == (Stage.CONFIRMED, {EvidenceKind.EVALUATION_REGRESSION})


@pytest.mark.parametrize("kind", EventKind)
def test_a_declared_change_is_for_review_and_an_undeclared_one_is_confirmed(kind: EventKind) -> None:
    seen = run(noisy(1.2, 200) + noisy(2.6, 400, seed=1))
    declared = detect(seen, events=[Event(201, kind)])
    assert {item.level for item in declared.evidence} == {Stage.SUSPECT}
    assert {item.event for item in declared.evidence} == {kind.value}
    assert declared.stage is Stage.HEALTHY  # the new level has become the reference
    assert detect(seen).stage is Stage.CONFIRMED


def test_a_declared_change_excuses_no_nan_and_no_divergence_long_after_it() -> None:
    change = [Event(201, EventKind.MIXTURE_SWITCH)]
    calm = noisy(1.2, 200) + noisy(1.6, 400, seed=1)
    assert detect(run([*calm[:210], NAN]), events=change).stage is Stage.CONFIRMED
    assert detect(run(calm + noisy(6.0, 100, seed=2)), events=change).stage is Stage.CONFIRMED


def test_a_resumed_attempt_raises_no_alarm_at_its_seam() -> None:
    falling = [1.0 + math.exp(-step / 100) for step in range(400)]
    first = [replace(point, attempt=1) for point in run(falling)]
    second = [replace(point, attempt=2) for point in run(falling[200:], start=201)]
    found = detect(first + second)
    assert (found.stage, found.evidence, found.attempt) == (Stage.HEALTHY, (), 2)


def test_the_last_attempt_counts_and_late_rows_of_earlier_ones_do_not() -> None:
    first = [*run(noisy(1.0, 150)), Point(151, loss=NAN)]
    second = [replace(point, attempt=2) for point in run(noisy(1.0, 150))]
    assert detect(first).stage is Stage.CONFIRMED
    found = detect([*first, *second, Point(152, loss=NAN)])
    assert (found.stage, found.late_points) == (Stage.HEALTHY, 1)


def test_a_metric_that_comes_late_is_counted_and_only_its_finiteness_is_looked_at() -> None:
    seen = run(noisy(1.0, 150))
    late = detect([*seen, Point(80, loss=50.0)])
    assert (late.stage, late.late_points) == (Stage.HEALTHY, 1)
    assert detect([*seen, Point(80, loss=NAN)]).stage is Stage.CONFIRMED


def test_a_job_that_logs_every_tenth_step_is_judged_by_steps() -> None:
    losses = noisy(1.0, 60) + noisy(3.0, 20, seed=1)
    found = detect([Point(10 * number, loss=loss) for number, loss in enumerate(losses, 1)])
    assert found.stage is Stage.CONFIRMED
    assert found.detected_step is not None
    assert found.detected_step <= 660
    assert detect([Point(10 * number, loss=loss) for number, loss in enumerate(losses[:60], 1)]).stage is Stage.HEALTHY


def test_simulated_curves_are_told_apart() -> None:
    """Far fewer curves than the benchmark has; a rule that stopped working, or began to cry wolf, fails here."""
    seen = list(fleet(7, 60))
    confirmed = {item.name: detect(item.points).stage is Stage.CONFIRMED for item in seen}
    diverging = [item for item in seen if item.kind not in HEALTHY]
    missed = [item.name for item in diverging if not confirmed[item.name]]
    assert len(missed) <= len(diverging) // 10
    assert not [item.name for item in seen if item.kind in HEALTHY and confirmed[item.name]]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(Kind.KL, EvidenceKind.KL_ENVELOPE), (Kind.FORGETTING, EvidenceKind.EVALUATION_REGRESSION)],
)
def test_what_the_loss_does_not_show_is_seen_beside_it(kind: Kind, expected: EvidenceKind) -> None:
    random = np.random.default_rng(3)
    steps = np.arange(1.0, 3001)
    runs = [dict(enumerate(healthy_kl(random, steps).tolist(), 1)) for _ in range(5)]
    config = Config(kl_envelope=Envelope.of_runs(runs))
    for number in range(3):
        found = detect(curve(random, kind, str(number)).points, config)
        assert found.stage is Stage.CONFIRMED
        assert expected in kinds(found)


def test_the_verdict_on_a_state_is_that_of_its_points() -> None:
    seen = run(noisy(1.0, 150))
    state, _ = observe(State(), seen)
    assert detection(state) == detect(seen)


def test_a_rise_too_slow_to_be_dated_leaves_no_step_that_is_good() -> None:
    noise = [0.002 * (step * 7919 % 11 - 5) for step in range(1500)]
    rising = [Point(step, loss=1.0 + noise[step] + max(0, step - 110) * 5e-5) for step in range(1, 1500)]
    seen = detect(rising)
    assert (seen.stage, seen.last_good_step) == (Stage.CONFIRMED, None)
    assert 1 <= (seen.onset_step or 0) <= 110
