"""What a causal model is asked, and the answers it may give, as token ids: one way for training and serving."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from ftpipeline.errors import InputError, UnlabelledSampleError
from ftpipeline.schema import PROMPT_LABELS, PROMPT_TEXT

_PLACE = "\ue000"
"""Stands for the text while the template is rendered: a private character, which no template writes."""


def load_chat_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model folder.

    Raises:
        InputError: it cannot be loaded, or as `check_chat`.
    """
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        summary = " ".join(str(error).split())
        raise InputError(f"tokenizer of the model cannot be loaded ({summary:.300}); check its files") from error
    check_chat(tokenizer)
    return tokenizer


def check_chat(tokenizer: PreTrainedTokenizerBase) -> None:
    """Return if a tokenizer can ask and answer.

    Raises:
        InputError: it is none of a tokenizer.json, has no chat template, or no token that ends an answer.
    """
    if not tokenizer.is_fast:
        raise InputError("tokenizer of the model has no tokenizer.json; give a model with a fast tokenizer")
    if not tokenizer.chat_template:
        raise InputError("tokenizer of the model has no chat template; add chat_template.jinja to its files")
    if tokenizer.eos_token_id is None:
        raise InputError("tokenizer of the model has no token that ends an answer; declare eos_token")


@dataclass(frozen=True)
class Prompter:
    """Renders the question, cuts its text to fit, and spells the answers.

    The parts around the text, the text, and the answer are tokenized apart and joined as ids. So the prompt of a text
    is the same whatever is answered, the text and nothing else is cut, and a text that spells a marker of the
    tokenizer (`<|im_end|>`) ends nothing.

    Attributes:
        tokenizer: of the model, with a chat template.
        labels: the declared labels.
        template: text of the user's turn; `{text}` stands for the text, `{labels}` for the labels.
        max_length: tokens of prompt and answer together.
    """

    tokenizer: PreTrainedTokenizerBase
    labels: Sequence[str]
    template: str
    max_length: int

    @cached_property
    def answers(self) -> list[list[int]]:
        """Token ids of each label, the last of them the token that ends an answer."""
        return [[*self._ids(label), int(self.tokenizer.eos_token_id)] for label in self.labels]

    def prompt(self, text: str) -> list[int]:
        """Return the token ids of the question about `text`, up to where the answer begins.

        Raises:
            UnlabelledSampleError: the template alone leaves no room for the longest answer.
        """
        before, after = self._around
        return [*before, *self._ids(text, split_special_tokens=True)[: self._room], *after]

    @cached_property
    def _around(self) -> tuple[list[int], list[int]]:
        asked = self.template.replace(PROMPT_LABELS, ", ".join(self.labels)).replace(PROMPT_TEXT, _PLACE)
        conversation = [{"role": "user", "content": asked}]
        rendered = self.tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        before, place, after = str(rendered).partition(_PLACE)
        if not place or _PLACE in after:
            raise InputError("chat template of the model does not show a user's turn once; give one that does")
        return self._ids(before), self._ids(after)

    @cached_property
    def _room(self) -> int:
        """How many tokens of a text fit."""
        fixed, longest = sum(map(len, self._around)), max(map(len, self.answers))
        if fixed + longest > self.max_length:
            raise UnlabelledSampleError(
                f"the prompt takes {fixed} of {self.max_length} tokens without any text and the longest label needs "
                f"{longest}; raise train.max_length or shorten train.prompt"
            )
        return self.max_length - fixed - longest

    def _ids(self, text: str, **options: bool) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, **options)["input_ids"]
        return ids
