"""`reference` is the specification's loop, bit for bit, flaws included."""

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftpipeline.errors import PipelineFileError
from ftpipeline.steps.leakage import NO_ROW, REFERENCE, Hit, shingle_search
from ftpipeline.steps.leakage import texts as texts_module
from ftpipeline.steps.leakage.check import find_best
from ftpipeline.steps.leakage.texts import batches
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.leakage_texts import sides

thresholds = st.sampled_from([-1.0, 0, 0.01, 0.25, 1 / 3, 0.5, 0.7, 0.995, 1, 1.5, 2])


def naive(train: Sequence[str], evals: Sequence[str], threshold: float) -> list[tuple[int, float]]:
    """Return eval row and rounded share, comparing every pair."""
    train_shingles = [shingles(text) for text in train]
    leaked = []
    for row, text in enumerate(evals):
        wanted = shingles(text)
        most = max((len(wanted & held) for held in train_shingles), default=0)
        share = most / len(wanted) if wanted else 0.0
        if share >= threshold:
            leaked.append((row, round(share, 2)))
    return leaked


def shingles(text: str) -> set[str]:
    tokens = re.findall(r"\w+", text.lower())
    return {" ".join(tokens[i : i + 8]) for i in range(len(tokens) - 7)}


def reference(train: Sequence[str], evals: Sequence[str], threshold: float) -> list[tuple[int, float]]:
    findings = find_best(batches(train), evals, threshold, REFERENCE)
    return [(hit.eval_row, hit.score) for hit in findings.hits]


def test_the_compatibility_vectors_are_reproduced() -> None:
    vectors = json.loads(shared("conformance", "pipeline.json").read_text("utf-8"))["leakage_report"]
    assert len(vectors) >= 16
    for vector in vectors:
        got = reference(vector["train"], vector["eval"], vector["threshold"])
        assert repr(got) == repr([tuple(pair) for pair in vector["out"]]), vector["name"]


@settings(max_examples=400)
@given(sides, sides, thresholds)
def test_it_equals_comparing_every_pair(train: list[str], evals: list[str], threshold: float) -> None:
    assert repr(reference(train, evals, threshold)) == repr(naive(train, evals, threshold))


@settings(max_examples=400)
@given(sides, sides, thresholds)
def test_it_equals_comparing_every_pair_when_postings_are_swept_after_every_row(
    train: list[str], evals: list[str], threshold: float
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts_module, "CHUNK_ROWS", 1)
        patched.setattr(shingle_search, "_FIRST_SWEEP", 1)
        patched.setattr(shingle_search, "_SWEEP_GROWTH", 1)
        assert repr(reference(train, evals, threshold)) == repr(naive(train, evals, threshold))


def test_the_first_of_the_best_training_rows_is_named() -> None:
    words = [f"w{n}" for n in range(12)]
    train = [" ".join(words[:9]), " ".join(words[:10]), " ".join(words[:10])]
    findings = find_best(batches(train), [" ".join(words)], 0.5, REFERENCE)
    assert findings.hits == (Hit(0, 1, 0.6, "containment"),)


def test_a_threshold_that_nothing_meets_by_itself_names_no_training_row() -> None:
    assert find_best([], ["short"], 0.0, REFERENCE).hits == (Hit(0, NO_ROW, 0.0, "containment"),)


@pytest.mark.parametrize("threshold", [float("nan"), float("inf")])
def test_a_threshold_that_is_no_number_is_refused(threshold: float) -> None:
    with pytest.raises(PipelineFileError, match=r"leakage\.threshold"):
        reference([], [], threshold)
