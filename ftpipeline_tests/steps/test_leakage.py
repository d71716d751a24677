"""Every hit is found and none is made up, whatever the rule, and the rule is named."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import PipelineFileError
from ftpipeline.steps.leakage import CHARACTERS, CONTAINMENT, EQUAL, METHODS, MINHASH, SHORT, Hit
from ftpipeline.steps.leakage.check import find_best, find_every
from ftpipeline.steps.leakage.columns import read_column, read_strings
from ftpipeline.steps.leakage.texts import batches
from ftpipeline.steps.text import words
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.leakage_texts import RUN, sides

thresholds = st.sampled_from([0.01, 0.25, 1 / 3, 0.5, 0.7, 1.0])
# Words of one alphabet, so that a search in the text is as good as one in its tokens.
latin = st.lists(
    st.lists(
        st.builds(lambda start, size: " ".join(RUN[start : start + size]), st.integers(0, 15), st.integers(0, 16))
        | st.sampled_from(["", "👍", "One, two!", "Word4 word5 WORD6 word7 word8."]),
        max_size=3,
    ).map(" ".join),
    max_size=6,
)


def wanted_shingles(text: str) -> set[str]:
    tokens = re.findall(r"\w+", text.lower())
    size = min(8, len(tokens))
    return {" ".join(tokens[i : i + size]) for i in range(len(tokens) - size + 1)} if size >= 5 else set()


def holds(train: str, shingle: str) -> bool:
    return f" {shingle} " in f" {' '.join(re.findall(r'[a-z0-9_]+', train.lower()))} "


def oracle(train: Sequence[str], evals: Sequence[str], threshold: float) -> list[Hit]:
    hits = []
    for row, question in enumerate(evals):
        wanted = wanted_shingles(question)
        rule = CONTAINMENT if len(re.findall(r"\w+", question)) >= 8 else SHORT
        for index, text in enumerate(train):
            share = sum(holds(text, shingle) for shingle in wanted) / max(len(wanted), 1)
            if words(text) == words(question):
                hits.append(Hit(row, index, 1.0, EQUAL))
            elif wanted and share >= threshold:
                hits.append(Hit(row, index, share, rule))
    return hits


def best(train: Sequence[str], evals: Sequence[str], threshold: float = 0.5, method: str = "exact") -> list[Hit]:
    return list(find_best(batches(train), evals, threshold, method).hits)


@given(latin, latin, thresholds)
def test_hits_are_those_of_comparing_every_pair(train: list[str], evals: list[str], threshold: float) -> None:
    assert find_every(train, evals, threshold) == oracle(train, evals, threshold)


@given(sides, sides, thresholds)
def test_the_best_hit_is_the_best_of_every_pair(train: list[str], evals: list[str], threshold: float) -> None:
    expected: dict[int, Hit] = {}
    for hit in find_every(train, evals, threshold):
        known = expected.get(hit.eval_row)
        if known is None or (hit.rule == EQUAL, hit.score) > (known.rule == EQUAL, known.score):
            expected[hit.eval_row] = hit
    found = best(train, evals, threshold)
    assert {hit.eval_row: (hit.score, hit.rule == EQUAL) for hit in found} == {
        row: (hit.score, hit.rule == EQUAL) for row, hit in expected.items()
    }


@given(sides, sides, st.randoms(use_true_random=False))
def test_the_order_of_training_rows_changes_no_score(train: list[str], evals: list[str], random: Any) -> None:
    shuffled = best(random.sample(train, len(train)), evals)
    assert [(hit.eval_row, hit.score, hit.rule) for hit in shuffled] == [
        (hit.eval_row, hit.score, hit.rule) for hit in best(train, evals)
    ]


@given(sides, sides)
def test_a_lower_threshold_only_adds_hits(train: list[str], evals: list[str]) -> None:
    strict, loose = (
        {(hit.eval_row, hit.train_row) for hit in find_every(train, evals, threshold)} for threshold in (0.7, 0.3)
    )
    assert strict <= loose


@given(sides)
def test_every_text_gives_itself_away(evals: list[str]) -> None:
    found = {(hit.eval_row, hit.train_row, hit.rule) for hit in find_every(evals, evals, 1.0)}
    assert {(row, row, EQUAL) for row in range(len(evals))} <= found
    assert [hit.rule for hit in best(evals, evals, 1.0)] == [EQUAL] * len(evals)


@given(sides, sides, thresholds)
def test_minhash_reports_nothing_that_exact_does_not(train: list[str], evals: list[str], threshold: float) -> None:
    exact = {hit.eval_row: hit for hit in best(train, evals, threshold)}
    for hit in best(train, evals, threshold, MINHASH):
        assert hit.score <= exact[hit.eval_row].score


def test_training_rows_stream_and_the_first_of_the_best_is_named() -> None:
    pieces = (next(batches([f"row {n}"])) for n in (5, 7, 7))
    assert find_best(pieces, ["Row 7!"], 0.5).hits == (Hit(0, 1, 1.0, EQUAL),)


def test_short_texts_are_found_by_equality_and_five_words_in_a_longer_text() -> None:
    lines = [shared("cases", "a", f"tickets_short_{side}.jsonl").read_text().splitlines() for side in ("train", "eval")]
    train, evals = ([json.loads(line)["text"] for line in side] for side in lines)
    assert best(train, evals) == [Hit(0, 0, 1.0, EQUAL), Hit(1, 1, 1.0, EQUAL), Hit(2, 2, 1.0, SHORT)]


def test_an_edited_copy_in_a_script_without_blanks_is_found_by_its_characters() -> None:
    question = "今天天气很好我们去公园散步吧大家一起来"
    train = [question.replace("公园", "海边"), f"你好。{question}谢谢", "an english text without any such character"]
    assert best(train, [question]) == [Hit(0, 1, 1.0, CHARACTERS)]
    assert best(train[:1], [question], 0.2) == [Hit(0, 0, 3 / 12, CHARACTERS)]


def test_spellings_of_one_text_are_equal() -> None:
    train = ["Die Größe passt nicht, cafe\u0301"]
    assert best(train, ["die GRÖSSE passt nicht CAF\u00c9"]) == [Hit(0, 0, 1.0, EQUAL)]


def test_a_signature_that_all_rows_share_hides_no_leak_and_makes_none() -> None:
    signature = " ".join(f"s{n}" for n in range(12))
    evals = [f"{' '.join(f'e{row}w{n}' for n in range(30))} {signature}" for row in range(200)]
    train = [f"something else {signature}", evals[7].replace(signature, "bye")]
    assert [(hit.eval_row, hit.train_row) for hit in best(train, evals)] == [(7, 1)]


def test_planted_and_natural_leaks_in_real_tickets_are_found_with_their_rules() -> None:
    tickets, gold_set = shared("data", "banking77_tickets.csv"), shared("data", "banking77_gold_v1.csv")
    gold = read_strings(gold_set, "text")
    hits = find_best(read_column(tickets, "text"), gold, 0.5).hits
    equal = {hit.eval_row for hit in hits if hit.rule == EQUAL}
    known = {words(text) for text in read_strings(tickets, "text")}
    assert equal == {row for row, text in enumerate(gold) if words(text) in known}
    assert equal
    assert {hit.rule for hit in hits} > {EQUAL}


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, float("nan"), float("inf")])
def test_a_threshold_that_flags_all_or_nothing_is_refused(threshold: float) -> None:
    with pytest.raises(PipelineFileError, match=r"leakage\.threshold"):
        best([], [], threshold)
    with pytest.raises(PipelineFileError, match=r"leakage\.threshold"):
        find_every([], [], threshold)


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PipelineFileError, match=", ".join(METHODS)):
        best([], [], method="fuzzy")
