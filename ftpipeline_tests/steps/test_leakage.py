"""The index finds what comparing every pair finds: no hit is lost, none is made up."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import PipelineFileError
from ftpipeline.steps.leakage import CONTAINMENT, EQUAL, Hit, check
from ftpipeline.steps.text import words
from ftpipeline_tests.shared import shared

thresholds = st.sampled_from([0.01, 0.25, 1 / 3, 0.5, 0.7, 1.0])
# Runs of one sequence overlap in long stretches, as a template and its edits do.
RUN = [f"word{n}" for n in range(16)]
runs = st.builds(lambda start, size: " ".join(RUN[start : start + size]), st.integers(0, 15), st.integers(0, 16))
texts = st.lists(runs | st.sampled_from(["", "👍", "One, two!", "Word4 word5 WORD6 word7 word8."]), max_size=3).map(
    " ".join
)
sides = st.lists(texts, max_size=6)


def shingles(text: str) -> set[str]:
    tokens = re.findall(r"\w+", text.lower())
    if len(tokens) < 5:
        return set()
    size = min(8, len(tokens))
    return {" ".join(tokens[i : i + size]) for i in range(len(tokens) - size + 1)}


def holds(train: str, shingle: str) -> bool:
    return f" {shingle} " in f" {' '.join(re.findall(r'[a-z0-9_]+', train.lower()))} "


def oracle(train: list[str], evals: list[str], threshold: float) -> list[Hit]:
    hits = []
    for row, question in enumerate(evals):
        wanted = shingles(question)
        for index, text in enumerate(train):
            share = sum(holds(text, shingle) for shingle in wanted) / max(len(wanted), 1)
            if words(text) == words(question):
                hits.append(Hit(row, str(index), 1.0, EQUAL))
            elif wanted and share >= threshold:
                hits.append(Hit(row, str(index), share, CONTAINMENT))
    return hits


def numbered(train: list[str]) -> list[tuple[str, str]]:
    return [(str(index), text) for index, text in enumerate(train)]


@given(sides, sides, thresholds)
def test_hits_are_those_of_comparing_every_pair(train: list[str], evals: list[str], threshold: float) -> None:
    assert check(numbered(train), evals, threshold) == oracle(train, evals, threshold)


@given(sides, sides, st.randoms(use_true_random=False))
def test_the_order_of_training_rows_changes_nothing(train: list[str], evals: list[str], random: Any) -> None:
    rows = numbered(train)
    assert check(random.sample(rows, len(rows)), evals, 0.5) == check(rows, evals, 0.5)


@given(sides, sides)
def test_a_lower_threshold_only_adds_hits(train: list[str], evals: list[str]) -> None:
    strict, loose = (set(check(numbered(train), evals, threshold)) for threshold in (0.7, 0.3))
    assert strict <= loose


@given(sides)
def test_every_text_gives_itself_away(evals: list[str]) -> None:
    found = {(hit.eval_row, hit.train_id, hit.rule) for hit in check(numbered(evals), evals, 1.0)}
    assert {(row, str(row), EQUAL) for row in range(len(evals))} <= found


def test_training_rows_may_stream() -> None:
    assert [hit.train_id for hit in check(((str(n), f"row {n}") for n in range(1000)), ["Row 7!"], 0.5)] == ["7"]


def test_an_id_with_several_texts_has_its_best_hit() -> None:
    question = " ".join(RUN[:10])
    train = [("T", f"hello {question}"), ("T", question.upper()), ("T", " ".join(RUN[:9]))]
    assert check(train, [question], 0.1) == [Hit(0, "T", 1.0, EQUAL)]


def test_short_texts_are_found_by_equality_and_five_words_by_containment() -> None:
    lines = [shared("cases", "a", f"tickets_short_{side}.jsonl").read_text().splitlines() for side in ("train", "eval")]
    train, evals = ([json.loads(line) for line in side] for side in lines)
    hits = check([(row["ticket_id"], row["text"]) for row in train], [row["text"] for row in evals], 0.5)
    found = [(evals[hit.eval_row]["ticket_id"], hit.train_id, hit.rule) for hit in hits]
    assert found == [("E1", "T1", EQUAL), ("E2", "T2", EQUAL), ("E3", "T3", CONTAINMENT)]


def test_a_signature_that_all_rows_share_hides_no_leak_and_makes_none() -> None:
    signature = " ".join(f"s{n}" for n in range(12))
    evals = [f"{' '.join(f'e{row}w{n}' for n in range(30))} {signature}" for row in range(200)]
    train = [("own", f"something else {signature}"), ("leak", evals[7].replace(signature, "bye"))]
    assert [(hit.eval_row, hit.train_id) for hit in check(train, evals, 0.5)] == [(7, "leak")]


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, float("nan"), float("inf")])
def test_a_threshold_that_flags_all_or_nothing_is_refused(threshold: float) -> None:
    with pytest.raises(PipelineFileError, match=r"leakage\.threshold"):
        check([], [], threshold)
