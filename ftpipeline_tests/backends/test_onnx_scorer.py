"""An answer depends on the artifact and the text alone, and a broken artifact answers nothing."""

import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from ftpipeline.backends.onnx_scorer import OnnxScorer
from ftpipeline.backends.probabilities import softmax
from ftpipeline.backends.threads import THREADS_VARIABLE
from ftpipeline.errors import EnvironmentProblemError, ExportCheckError, TokenizerMismatchError
from ftpipeline_tests.tiny_model import LABELS, WORDS

texts = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)


@pytest.fixture
def broken(tmp_path: Path, exported: Path) -> Path:
    """A copy of the export that a test may damage."""
    return Path(shutil.copytree(exported, tmp_path / "broken"))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(texts, min_size=1, max_size=8), st.integers(1, 9))
def test_an_answer_does_not_depend_on_the_texts_beside_it(exported: Path, batch: list[str], batch_size: int) -> None:
    together = OnnxScorer().score(exported, batch, batch_size=batch_size)
    alone = [OnnxScorer().score(exported, [text], batch_size=1) for text in batch[:3]]
    assert list(together.predicted[:3]) == [scores.predicted[0] for scores in alone]
    assert list(together.confidence[:3]) == [scores.confidence[0] for scores in alone]


def test_every_text_gets_a_class_and_a_probability(exported: Path) -> None:
    scores = OnnxScorer().score(exported, [*WORDS, "", "zzz"], batch_size=4)
    assert len(scores.predicted) == len(scores.confidence) == len(WORDS) + 2
    assert set(scores.predicted) <= set(range(len(LABELS)))
    assert len(set(scores.predicted)) > 1
    assert all(1 / len(LABELS) <= confidence <= 1 for confidence in scores.confidence)


@pytest.mark.parametrize("name", ["chat_template.jinja", "tokenizer.json"])
def test_a_tokenizer_or_template_that_was_edited_after_the_export_is_refused_at_load(broken: Path, name: str) -> None:
    with (broken / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(TokenizerMismatchError, match=r"tokenizer of the artifact is .*, the manifest pins"):
        OnnxScorer().score(broken, ["card"], batch_size=1)


def test_what_lies_beyond_the_length_is_not_read(exported: Path) -> None:
    head = " ".join(WORDS[:14])
    scores = OnnxScorer().score(exported, [head, head + " refund late password"], batch_size=2)
    assert scores.confidence[0] == scores.confidence[1]


def test_progress_ends_at_the_number_of_texts(exported: Path) -> None:
    heard: list[tuple[int, int]] = []

    def hear(done: int, total: int, note: str) -> None:
        heard.append((done, total))

    OnnxScorer().score(exported, ["card"] * 5, batch_size=2, progress=hear)
    assert heard == [(2, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "export.json"])
def test_an_artifact_that_lacks_a_file_is_refused(broken: Path, name: str) -> None:
    (broken / name).unlink()
    with pytest.raises(ExportCheckError):
        OnnxScorer().score(broken, ["card"], batch_size=1)


def test_a_model_of_another_number_of_labels_is_refused(broken: Path) -> None:
    record = broken / "export.json"
    record.write_text(record.read_text(encoding="utf-8").replace('"login",', ""), encoding="utf-8")
    with pytest.raises(ExportCheckError, match="2 labels are declared"):
        OnnxScorer().score(broken, ["card"], batch_size=1)


def test_a_model_that_answers_nan_is_refused(broken: Path) -> None:
    model = onnx.load(broken / "model.onnx")
    for tensor in model.graph.initializer:
        if tensor.name == "classifier.bias":
            tensor.CopyFrom(numpy_helper.from_array(np.full(len(LABELS), np.nan, np.float32), tensor.name))
    onnx.save(model, broken / "model.onnx")
    with pytest.raises(ExportCheckError, match="not finite"):
        OnnxScorer().score(broken, ["card"], batch_size=1)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=2, max_size=8))
def test_probabilities_are_finite_and_sum_to_one(logits: list[float]) -> None:
    assert math.isclose(softmax(np.array(logits, np.float32)).sum(), 1.0)


@pytest.mark.parametrize("value", ["0", "-1", "two", ""])
def test_a_number_of_threads_that_is_none_is_refused(
    exported: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, value)
    with pytest.raises(EnvironmentProblemError, match=THREADS_VARIABLE):
        OnnxScorer().score(exported, ["card"], batch_size=1)


def test_serving_loads_neither_torch_nor_transformers() -> None:
    code = "import sys, ftpipeline.backends.onnx_scorer; print({'torch', 'transformers', 'peft'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout.strip() == b"set()"
