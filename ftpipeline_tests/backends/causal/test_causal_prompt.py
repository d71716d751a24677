"""A prompt is the same in training and serving, fits with the longest answer, and no text can end it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from ftpipeline.backends.causal_prompt import Prompter, load_chat_tokenizer
from ftpipeline.errors import InputError, UnlabelledSampleError
from ftpipeline_tests.backends.causal.tiny import MAX_LENGTH, PROMPT
from ftpipeline_tests.tiny_llama import END, build_tiny_llama
from ftpipeline_tests.tiny_model import LABELS, WORDS

texts = st.one_of(st.text(max_size=200), st.lists(st.sampled_from((*WORDS, END, "<|im_start|>"))).map(" ".join))


@pytest.fixture(scope="module")
def tokenizer(llama: Path) -> PreTrainedTokenizerBase:
    return load_chat_tokenizer(llama)


@pytest.fixture(scope="module")
def prompter(tokenizer: PreTrainedTokenizerBase) -> Prompter:
    return Prompter(tokenizer, LABELS, PROMPT, MAX_LENGTH)


def test_the_template_shows_text_and_labels_and_asks_for_an_answer(prompter: Prompter) -> None:
    rendered = prompter.tokenizer.decode(prompter.prompt("my card"))
    asked = f"<|im_start|>user\nmy card\nQueue: {', '.join(LABELS)}<|im_end|>\n<|im_start|>assistant\n"
    assert rendered == asked


def test_an_answer_is_the_label_and_the_token_that_ends_it(prompter: Prompter) -> None:
    assert [prompter.tokenizer.decode(answer) for answer in prompter.answers] == [f"{label}{END}" for label in LABELS]


@given(texts)
def test_prompt_and_longest_answer_fit_together(prompter: Prompter, text: str) -> None:
    assert len(prompter.prompt(text)) + max(map(len, prompter.answers)) <= MAX_LENGTH


@given(texts)
def test_a_text_that_spells_a_marker_ends_nothing(prompter: Prompter, text: str) -> None:
    end = prompter.tokenizer.eos_token_id
    assert prompter.prompt(text).count(end) == prompter.prompt("").count(end) == 1


def test_a_long_text_loses_its_end_and_nothing_else(prompter: Prompter) -> None:
    rendered = str(prompter.tokenizer.decode(prompter.prompt("card " * 200)))
    assert rendered.startswith("<|im_start|>user\ncard card")
    assert rendered.endswith("<|im_start|>assistant\n")


def test_a_prompt_that_leaves_no_room_for_an_answer_is_refused(tokenizer: PreTrainedTokenizerBase) -> None:
    with pytest.raises(UnlabelledSampleError, match=r"raise train\.max_length"):
        Prompter(tokenizer, LABELS, PROMPT, 30).prompt("my card")


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    base = build_tiny_llama(tmp_path / "base")
    (base / "chat_template.jinja").unlink()
    with pytest.raises(InputError, match="no chat template"):
        load_chat_tokenizer(base)


def test_a_template_that_does_not_show_the_text_is_refused(tmp_path: Path) -> None:
    base = build_tiny_llama(tmp_path / "base")
    (base / "chat_template.jinja").write_text("{% for message in messages %}hello{% endfor %}", encoding="utf-8")
    prompter = Prompter(load_chat_tokenizer(base), LABELS, PROMPT, MAX_LENGTH)
    with pytest.raises(InputError, match="does not show a user's turn once"):
        prompter.prompt("my card")
