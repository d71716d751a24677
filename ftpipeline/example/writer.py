"""Writes what customers write: a problem of one queue amid openings, details, moods and closings.

The shares below are set so that the queues can be learned but not perfectly: some wording is vague, some tickets raise
a second problem, and customers write in a hurry.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any

from ftpipeline.example.grammar import Grammar, read_data
from ftpipeline.example.queues import Queue

CHANNELS = {"email": 45, "chat": 28, "app": 21, "phone_transcript": 6}
"""Channel to its relative share."""

_VAGUE = 0.05
_RESTATED = 0.55
_ASIDE = 0.05
_DETAIL = 0.2
_MOOD = 0.15
_TYPO = 0.08
_OPENING = {"email": 0.65, "chat": 0.2, "app": 0.1, "phone_transcript": 0.3}
_CLOSING = {"email": 0.5, "chat": 0.1, "app": 0.1, "phone_transcript": 0.1}
_LOWER_CASE = {"email": 0.05, "chat": 0.5, "app": 0.25, "phone_transcript": 0.0}


class Writer:
    """Composes message bodies; the same generator state always gives the same body."""

    def __init__(self, rng: Random, queues: Iterable[Queue]) -> None:
        """Read the wording.

        Args:
            rng: where every choice comes from.
            queues: all queues; a message of one may mention a problem of another of its family.
        """
        data = read_data("phrases.toml")
        self._rng = rng
        self._phrases: Mapping[str, Any] = data
        self._grammar = Grammar(rng, data["slots"])
        self._queues = tuple(queues)

    def channel(self) -> str:
        """Return a channel, each with its share."""
        return self._rng.choices(list(CHANNELS), list(CHANNELS.values()))[0]

    def phrase(self, kind: str, when: datetime, **given: str) -> str:
        """Return a phrase of a list of phrases.toml, for example a signature.

        Args:
            kind: name of the list.
            when: when the text is written.
            given: values of slots that only the caller knows.
        """
        return self._grammar.expand(self._phrases[kind], when, **given)

    def message(self, queue: Queue, when: datetime, channel: str, *, clear: bool = False) -> str:
        """Return a body that belongs into `queue`.

        Args:
            queue: the right queue.
            when: when the body is written.
            channel: shapes how formal the body is.
            clear: leave out vague wording, second problems and typing errors.
        """
        parts = self._problem(queue, when, vague=not clear and self._chance(_VAGUE))
        if self._chance(_DETAIL):
            parts.insert(self._rng.randint(0, 1), self.phrase("details", when))
        if not clear and self._chance(_ASIDE):
            parts.append(self._aside(queue, when))
        if self._chance(_MOOD):
            parts.append(self.phrase("moods", when))
        body = self._framed(parts, when, channel)
        return body if clear or not self._chance(_TYPO) else self._mistyped(body)

    def _problem(self, queue: Queue, when: datetime, *, vague: bool) -> list[str]:
        if vague:
            return [self._grammar.expand(queue.vague, when)]
        wordings = self._rng.sample(queue.templates, 2 if self._chance(_RESTATED) else 1)
        return [self._grammar.expand([wording], when) for wording in wordings]

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _aside(self, queue: Queue, when: datetime) -> str:
        others = [o for o in self._queues if o.family == queue.family and not o.late and o is not queue] or [queue]
        other = self._grammar.expand(self._rng.choice(others).templates, when)
        return self.phrase("asides", when, other=other)

    def _framed(self, parts: Sequence[str], when: datetime, channel: str) -> str:
        body = " ".join(map(_sentence, parts))
        if self._chance(_OPENING[channel]):
            gap = "\n" if channel == "email" else " "
            body = f"{self.phrase('openings', when)},{gap}{body}"
        if self._chance(_CLOSING[channel]):
            body = f"{body} {_sentence(self.phrase('closings', when))}"
        return body.lower() if self._chance(_LOWER_CASE[channel]) else body

    def _mistyped(self, body: str) -> str:
        """Return `body` with two neighbouring letters of one longer word swapped."""
        words = body.split(" ")
        long = [index for index, word in enumerate(words) if len(word) > 4 and word.isalpha()]
        if not long:
            return body
        index = self._rng.choice(long)
        word = words[index]
        at = self._rng.randrange(1, len(word) - 2)
        words[index] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        return " ".join(words)


def _sentence(text: str) -> str:
    ended = text if text[-1] in ".?!" else f"{text}."
    return ended[0].upper() + ended[1:]
