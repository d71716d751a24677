"""Paired answers and their bootstrap: scores follow from the cells, intervals are the same for the same counts."""

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import canonical_json, parse_json
from ftpipeline.errors import GateRecordError
from ftpipeline.steps.bootstrap import RESAMPLES, paired_interval
from ftpipeline.steps.metrics import classification_report
from ftpipeline.steps.paired import ACCURACY, MACRO_F1, SIDES, Pairs
from ftpipeline_tests.steps.gate_examples import LABELS, answers_of, expected_of

answer = st.sampled_from([*LABELS, "abstain"])
rows = st.lists(st.tuples(st.sampled_from(LABELS), answer, answer), min_size=1, max_size=60)
Row = tuple[str, str, str]


def pairs_of(found: list[Row]) -> Pairs:
    return Pairs.of_answers(*zip(*found, strict=True))


@given(rows)
def test_a_score_is_bit_for_bit_what_the_evaluation_measures(found: list[Row]) -> None:
    pairs, expected = pairs_of(found), [row[0] for row in found]
    for side, column in zip(SIDES, (1, 2), strict=True):
        measured = classification_report(expected, [row[column] for row in found], LABELS)
        assert pairs.score(side, MACRO_F1) == measured.macro_f1
        assert pairs.score(side, ACCURACY) == measured.accuracy
        assert (pairs.rows, pairs.correct(side)) == (measured.n, measured.correct)


@given(rows)
def test_pairs_written_as_json_read_back(found: list[Row]) -> None:
    pairs = pairs_of(found)
    assert Pairs.from_json(parse_json(canonical_json(pairs.to_json()))) == pairs


@pytest.mark.parametrize("count", [0, -1, 1.0, True, None, "1"])
def test_a_count_that_is_no_count_is_refused(count: Any) -> None:
    with pytest.raises(GateRecordError, match="row counts"):
        Pairs.from_json([{"expected": "a", "candidate": "a", "production": "a", "rows": count}])


def test_a_cell_that_stands_twice_is_refused() -> None:
    cell = {"expected": "a", "candidate": "a", "production": "a", "rows": 1}
    with pytest.raises(GateRecordError, match="distinct"):
        Pairs.from_json([cell, cell])


@given(rows, st.randoms())
def test_the_interval_depends_on_the_rows_and_not_on_their_order(found: list[Row], random: Any) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)
    for metric in (ACCURACY, MACRO_F1):
        assert paired_interval(pairs_of(found), metric) == paired_interval(pairs_of(shuffled), metric)


def test_swapping_the_sides_turns_the_interval_about() -> None:
    found = list(zip(expected_of(300), answers_of(300, 240), answers_of(300, 150), strict=True))
    other = [(expected, production, candidate) for expected, candidate, production in found]
    for metric in (ACCURACY, MACRO_F1):
        one, two = (paired_interval(pairs_of(each), metric) for each in (found, other))
        assert (one.low, one.high) == pytest.approx((-two.high, -two.low), abs=0.01)  # other draws of the same rows


def test_equal_answers_differ_by_nothing_whatever_rows_are_drawn() -> None:
    interval = paired_interval(Pairs.of_answers(expected_of(90), answers_of(90, 60), answers_of(90, 60)), MACRO_F1)
    assert (interval.low, interval.high, interval.half_width) == (0, 0, 0)


@pytest.mark.parametrize("metric", [ACCURACY, MACRO_F1])
def test_the_vectorised_resampling_agrees_with_drawing_rows_one_by_one(metric: str) -> None:
    random = numpy.random.default_rng(3)
    found = [(label, *random.choice([label, *LABELS], 2)) for label in expected_of(120)]
    differences = []
    for _ in range(RESAMPLES):
        drawn = pairs_of([found[row] for row in random.integers(0, len(found), len(found))])
        differences.append(drawn.score("candidate", metric) - drawn.score("production", metric))
    low, high = numpy.quantile(differences, [0.025, 0.975])
    interval = paired_interval(pairs_of(found), metric)
    assert interval.low == pytest.approx(low, abs=0.02)
    assert interval.high == pytest.approx(high, abs=0.02)


def test_a_class_that_only_one_row_expects_may_be_missing_in_a_draw() -> None:
    pairs = Pairs.of_answers(["login", *["billing"] * 3], ["login", *["billing"] * 3], ["billing"] * 4)
    interval = paired_interval(pairs, MACRO_F1)
    assert 0 <= interval.low <= interval.high <= 1
