"""The answer is the likeliest label, whatever is scored beside it and whichever way the model is stored."""

import importlib.util
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from ftpipeline.backends.adapter_export import AdapterExporter
from ftpipeline.backends.causal_prompt import Prompter, load_chat_tokenizer
from ftpipeline.backends.causal_runtime import ANSWERS_AT_ONCE, TransformersRuntime
from ftpipeline.backends.causal_scorer import CausalScorer, open_runtime
from ftpipeline.backends.label_scoring import label_scores, token_log_likelihoods
from ftpipeline.errors import BaseModelMismatchError, ExportCheckError
from ftpipeline_tests.backends.causal.conftest import Exported
from ftpipeline_tests.backends.causal.tiny import MAX_LENGTH, PROMPT, export_params, write_record
from ftpipeline_tests.tiny_llama import build_tiny_llama
from ftpipeline_tests.tiny_model import LABELS, WORDS

texts = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
TEXTS = ["my card is late", "password reset please", "", "courier tracking"]


@pytest.fixture(scope="module")
def runtime(exported: Exported) -> TransformersRuntime:
    return TransformersRuntime(AutoModelForCausalLM.from_pretrained(exported.merged))


@pytest.fixture(scope="module")
def scorer() -> CausalScorer:
    return CausalScorer()


@pytest.fixture(scope="module")
def prompter(exported: Exported) -> Prompter:
    return Prompter(load_chat_tokenizer(exported.merged), LABELS, PROMPT, MAX_LENGTH)


@settings(max_examples=10)
@given(st.lists(texts, min_size=1, max_size=4), st.integers(1, 5))
def test_an_answer_does_not_depend_on_the_texts_beside_it(
    scorer: CausalScorer, exported: Exported, batch: list[str], batch_size: int
) -> None:
    together = scorer.score(exported.gguf, batch, batch_size=batch_size)
    alone = [scorer.score(exported.gguf, [text], batch_size=1) for text in batch]
    assert list(together.predicted) == [scores.predicted[0] for scores in alone]
    assert list(together.confidence) == [scores.confidence[0] for scores in alone]


def test_likelihoods_are_those_of_the_whole_text_read_at_once(
    runtime: TransformersRuntime, exported: Exported, prompter: Prompter
) -> None:
    model = AutoModelForCausalLM.from_pretrained(exported.merged)
    prompt = prompter.prompt("my card is late")
    for answer, found in zip(prompter.answers, runtime.log_likelihoods(prompt, prompter.answers), strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1].numpy()
        assert np.allclose(token_log_likelihoods(logits, answer), found, atol=1e-4)


def test_more_answers_than_fit_at_once_are_scored_alike(runtime: TransformersRuntime, prompter: Prompter) -> None:
    prompt, answer = prompter.prompt("my card"), prompter.answers[0]
    found = runtime.log_likelihoods(prompt, [answer] * (ANSWERS_AT_ONCE + 1))
    assert len(found) == ANSWERS_AT_ONCE + 1
    assert all(np.allclose(likelihoods, found[0], atol=1e-5) for likelihoods in found)


def test_a_label_is_not_the_less_likely_for_being_long() -> None:
    assert label_scores([np.array([-1.0, -1.0]), np.array([-1.0] * 9), np.array([-2.0])]).tolist() == [-1.0, -1.0, -2.0]


def test_a_logit_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ExportCheckError, match="not finite"):
        token_log_likelihoods(np.array([[0.0, math.nan]]), [0])


def test_what_the_model_writes_is_the_likeliest_token_each_time(
    runtime: TransformersRuntime, exported: Exported, prompter: Prompter
) -> None:
    model = AutoModelForCausalLM.from_pretrained(exported.merged)
    prompt, end = prompter.prompt("my card"), prompter.tokenizer.eos_token_id
    ids = list(prompt)
    with torch.no_grad():
        while len(ids) < len(prompt) + 6 and (not ids[len(prompt) :] or ids[-1] != end):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert runtime.greedy(prompt, end, 6) == [token for token in ids[len(prompt) :] if token != end]


def test_quantizing_moves_confidences_little(scorer: CausalScorer, exported: Exported) -> None:
    served, merged = (scorer.score(path, TEXTS, batch_size=2) for path in (exported.gguf, exported.merged))
    assert np.allclose(served.confidence, merged.confidence, atol=0.05)


def test_the_runtime_is_named_with_its_version_and_what_it_reads(scorer: CausalScorer, exported: Exported) -> None:
    assert scorer.runtime(exported.merged).startswith("transformers 5.")
    assert scorer.runtime(exported.gguf).startswith(("transformers 5.", "llama-cpp-python "))


def test_llama_cpp_answers_as_the_gguf_reader_does(exported: Exported, prompter: Prompter) -> None:
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("needs llama-cpp-python; pip install llama-cpp-python")
    from ftpipeline.backends.causal_model import load_causal

    served = open_runtime(exported.gguf, MAX_LENGTH)
    read = TransformersRuntime(load_causal(exported.gguf, gguf="model.gguf"))
    assert served.name.startswith("llama-cpp-python")
    prompt = prompter.prompt("my card is late")
    pairs = zip(*(it.log_likelihoods(prompt, prompter.answers) for it in (served, read)), strict=True)
    assert all(np.allclose(theirs, ours, atol=0.2) for theirs, ours in pairs)  # it quantizes activations too
    assert served.greedy(prompt, 2, 1) == read.greedy(prompt, 2, 1)


def test_progress_ends_at_the_number_of_texts(scorer: CausalScorer, exported: Exported) -> None:
    heard: list[tuple[int, int]] = []

    def hear(done: int, total: int, note: str) -> None:
        heard.append((done, total))

    scorer.score(exported.gguf, ["card"] * 5, batch_size=2, progress=hear)
    assert heard == [(2, 5), (4, 5), (5, 5)]


def test_an_adapter_alone_answers_as_the_merged_model_does(
    scorer: CausalScorer, exported: Exported, llama: Path, llama_adapter: Path, tmp_path: Path
) -> None:
    AdapterExporter().export(llama, llama_adapter, export_params("none", merge_adapter=False), tmp_path / "out")
    write_record(tmp_path / "out", llama, quantize="none", merge_adapter=False)
    alone = CausalScorer().on(llama).score(tmp_path / "out", TEXTS, batch_size=2)
    merged = scorer.score(exported.merged, TEXTS, batch_size=2)
    assert list(alone.predicted) == list(merged.predicted)
    assert np.allclose(alone.confidence, merged.confidence, atol=1e-4)
    with pytest.raises(BaseModelMismatchError):
        CausalScorer().on(build_tiny_llama(tmp_path / "other", tied=False)).score(tmp_path / "out", TEXTS, batch_size=2)


@pytest.mark.parametrize("name", ["model.gguf", "tokenizer.json", "chat_template.jinja", "export.json"])
def test_an_artifact_that_lacks_a_file_answers_nothing(exported: Exported, tmp_path: Path, name: str) -> None:
    broken = Path(shutil.copytree(exported.gguf, tmp_path / "broken"))
    (broken / name).unlink()
    with pytest.raises(ExportCheckError):
        CausalScorer().score(broken, ["card"], batch_size=1)
