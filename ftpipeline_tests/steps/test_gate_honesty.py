"""Who is promoted when chance alone decides, and who when there is a gain: 200 simulated pairs each, seeded.

A simulated training knows each row with a probability that depends on how hard the row is and on the training's own
quality, which varies with the seed. The noise is what was measured on real trainings: two seeds of MiniLM on 77 queues
and 3,080 rows scored .658 and .659; three seeds of a small Llama .590, .704 and .729.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy
import pytest

from ftpipeline.records import Verdict
from ftpipeline.steps.bootstrap import paired_interval
from ftpipeline.steps.gate_arithmetic import noise_band
from ftpipeline.steps.gate_decision import GateDecision, decide
from ftpipeline.steps.metrics import classification_report
from ftpipeline.steps.paired import MACRO_F1, Pairs
from ftpipeline_tests.steps.gate_examples import (
    CANDIDATE,
    GATES,
    LABELS,
    PRODUCTION,
    ROLES,
    expected_of,
    measured,
    report,
)

PAIRS = 200
MOST_FALSE, LEAST_TRUE = 16, 160
NO_DROP_LIMIT = {"regression_max_drop": 1.0, "safety_max_drop": 1.0}


@dataclass(frozen=True)
class World:
    """Trainings of one manifest family, measured on one eval set.

    Attributes:
        rows: rows of the eval set.
        quality: mean share of rows that a training knows.
        deviation: standard deviation of that share over seeds, beside what the rows themselves add.
    """

    random: numpy.random.Generator
    rows: int
    quality: float
    deviation: float

    @property
    def expected(self) -> list[str]:
        return expected_of(self.rows)

    def train(self, gain: float = 0.0) -> list[str]:
        """Return the answers of a training under the next seed; its quality is `gain` higher than the family's."""
        quality = self.quality + gain + self.deviation * self.random.standard_normal()
        known = self.random.random(self.rows) < numpy.clip(quality, 0, 1)
        other = self.random.integers(1, len(LABELS), self.rows)
        return [LABELS[(row + (0 if known[row] else other[row])) % len(LABELS)] for row in range(self.rows)]

    def retrain(self, answers: Sequence[str], share: float, gain: float = 0.0) -> list[str]:
        """Return answers that differ from others on a share of the rows; on those, they are those of a new training."""
        fresh, changed = self.train(gain / share if share else 0.0), self.random.random(self.rows) < share
        return [new if differs else old for new, old, differs in zip(fresh, answers, changed, strict=True)]

    def score(self, answers: Sequence[str]) -> float:
        return classification_report(self.expected, answers, LABELS).macro_f1


def judge(
    world: World, candidate: Sequence[str], production: Sequence[str], threshold: float, seeds: Sequence[float] | None
) -> GateDecision:
    expected = world.expected
    one, other = measured(CANDIDATE, expected, candidate), measured(PRODUCTION, expected, production)
    answers = dict.fromkeys(ROLES, Pairs.of_answers(expected, candidate, production))
    gates = {**GATES, **NO_DROP_LIMIT, "task_min_gain_vs_prod": threshold}
    scores = None if seeds is None else {"task": seeds}
    return decide(one, other, gates, answers=answers, seed_scores=scores)


def promoted(case: Callable[[], GateDecision]) -> int:
    return sum(case().verdict is Verdict.PASS for _ in range(PAIRS))


def seeded(seed: int, **changes: float) -> World:
    values = {"rows": 600, "quality": 0.7, "deviation": 0.03} | changes
    return World(numpy.random.default_rng(seed), int(values["rows"]), values["quality"], values["deviation"])


@pytest.mark.parametrize("deviation", [0.03, 0.074])
def test_with_a_band_of_three_seeds_equal_models_are_promoted_in_at_most_sixteen_of_200(deviation: float) -> None:
    world = seeded(11, deviation=deviation)

    def equal() -> GateDecision:
        seeds = [world.score(world.train()) for _ in range(3)]
        return judge(world, world.train(), world.train(), 1 / world.rows, seeds)

    assert promoted(equal) <= MOST_FALSE


@pytest.mark.parametrize("deviation", [0.03])
def test_with_a_band_gains_of_twice_the_least_threshold_are_promoted_in_at_least_80_percent(deviation: float) -> None:
    world = seeded(13, deviation=deviation, quality=0.4)

    def gained() -> GateDecision:
        seeds = [world.score(world.train()) for _ in range(3)]
        production = world.train()
        threshold = least_threshold(world, production, seeds)
        return judge(world, world.train(2 * threshold), production, threshold, seeds)

    assert promoted(gained) >= LEAST_TRUE


def least_threshold(world: World, production: Sequence[str], seeds: Sequence[float]) -> float:
    """Return the smallest threshold that is neither refused before training nor below the interval at the gate."""
    width = paired_interval(Pairs.of_answers(world.expected, world.train(), production), MACRO_F1).half_width
    return float(max(noise_band(seeds).width, Decimal(1) / world.rows, Decimal(str(width))))


@pytest.mark.parametrize("share", [0.15])
def test_without_a_band_equal_models_are_promoted_in_at_most_sixteen_of_200(share: float) -> None:
    world = seeded(17, deviation=0.001, quality=0.66)

    def equal() -> GateDecision:
        production = world.train()
        return judge(world, world.retrain(production, share), production, 1 / world.rows, None)

    assert promoted(equal) <= MOST_FALSE


def test_without_a_band_gains_of_twice_the_half_width_are_promoted_in_at_least_80_percent() -> None:
    world, share = seeded(19, deviation=0.001, quality=0.6), 0.4

    def gained() -> GateDecision:
        production = world.train()
        usual = Pairs.of_answers(world.expected, world.retrain(production, share), production)
        threshold = paired_interval(usual, MACRO_F1).half_width
        return judge(world, world.retrain(production, share, 2 * threshold), production, threshold, None)

    assert promoted(gained) >= LEAST_TRUE


def test_the_spread_of_three_seeds_alone_would_promote_too_many_equal_models() -> None:
    """Why the band is as wide as it is: a rule that takes highest minus lowest for the noise does not hold 5 %."""
    random = numpy.random.default_rng(23)
    scores = random.normal(0.7, 0.03, (PAIRS, 5))
    above = scores[:, 0] - scores[:, 1] >= numpy.ptp(scores[:, 2:], axis=1)
    assert above.sum() > MOST_FALSE


GRID = 1000
THRESHOLD_GAIN, THRESHOLD_DROP = 1, 10


def test_each_of_1991_gains_and_drops_that_equal_their_threshold_gets_the_documented_verdict() -> None:
    cases = [("task", low, low + THRESHOLD_GAIN) for low in range(GRID)]
    cases += [("regression", high, high - THRESHOLD_DROP) for high in range(THRESHOLD_DROP, GRID + 1)]
    assert len(cases) == 1991
    wrong = []
    for role, before, after in cases:
        gain = THRESHOLD_GAIN / GRID if role == "task" else 0
        gates = {**GATES, "task_min_gain_vs_prod": gain, "regression_max_drop": THRESHOLD_DROP / GRID}
        candidate, production = report(CANDIDATE, **{role: after / GRID}), report(PRODUCTION, **{role: before / GRID})
        documented = Verdict.PASS if before else Verdict.REFUSED  # a production that scores zero tells nothing
        if decide(candidate, production, gates).verdict is not documented:
            wrong.append((role, before, after))
    assert wrong == []
