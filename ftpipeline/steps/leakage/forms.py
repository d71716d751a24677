r"""Tables that tell kernels what code points become: Python's own `lower()`, `\w` and normal forms.

What a code point becomes can be looked up alone only if its neighbours have no say. They have one for the capital
sigma, whose lower case depends on where it stands in a word, and, where texts are folded, for characters that compose
with the one before. Rows that hold such a code point are left to Python.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from ftpipeline.steps.leakage.layout import FOLDS_OTHERWISE, ITSELF, SEPARATOR, SPACELESS, UNDECIDED, Forms

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array

LIMIT = 0x34000
"""Code points from here on are no part of a word and have no other form."""

_UNCHANGED = ((0x3400, 0xA000), (0xAC00, 0xF900), (0x17000, 0x1B000), (0x20000, 0x2F800), (0x2FA20, LIMIT))
"""Ideographs, syllables, surrogates and private use: no form but their own."""

_SPACELESS = (
    (0x0E00, 0x1000),  # Thai, Lao, Tibetan
    (0x1000, 0x10A0),  # Myanmar
    (0x1780, 0x1800),  # Khmer
    (0x3040, 0x3100),  # Hiragana, Katakana
    (0x31F0, 0x3200),  # Katakana extensions
    (0x3400, 0xA000),  # Han
    (0xF900, 0xFB00),
    (0xFF66, 0xFFA0),
    (0x20000, LIMIT),
)
_CAPITAL_SIGMA = "\u03a3"
_WORD = re.compile(r"\w")


def is_spaceless(character: str) -> bool:
    """Tell whether a character belongs to a script that sets no blanks between words."""
    return any(first <= ord(character) < end for first, end in _SPACELESS)


@cache
def lower_forms() -> Forms:
    """Return the tables of `text.lower()`."""
    return _both()[0]


@cache
def folded_forms() -> Forms:
    """Return the tables of NFKC, case folding and NFKC again."""
    return _both()[1]


@cache
def plain_forms() -> Forms:
    """Return tables that change nothing."""
    import numpy as np

    form = np.where(_word_mask(), np.int32(ITSELF), np.int32(SEPARATOR)).astype(np.int32)
    return Forms(form, np.zeros(1, np.uint8), np.zeros(LIMIT, np.uint8))


@cache
def _both() -> tuple[Forms, Forms]:
    import numpy as np

    pool = _Pool()
    lower = plain_forms().form.copy()
    folded = lower.copy()
    for character in _changing():
        lower[ord(character)] = UNDECIDED if character == _CAPITAL_SIGMA else pool.place(character, character.lower())
        folded[ord(character)] = pool.place(character, _folded(character)) if _stands_alone(character) else UNDECIDED
    traits = np.where(lower != folded, np.uint8(FOLDS_OTHERWISE), np.uint8(0))
    for first, end in _SPACELESS:
        traits[first:end] |= SPACELESS
    shared_pool = np.frombuffer(bytes(pool.bytes), np.uint8).copy()
    return Forms(lower, shared_pool, traits), Forms(folded, shared_pool, traits)


def _word_mask() -> "Array":
    import numpy as np

    mask = np.zeros(LIMIT, np.bool_)
    for run in re.finditer(r"\w+", "".join(map(chr, range(LIMIT)))):
        mask[run.start() : run.end()] = True
    return mask


def _changing() -> Iterator[str]:
    """Yield the characters that become something else, or that may compose with the one before."""
    seconds = _composing()
    for code_point in _code_points():
        character = chr(code_point)
        if (
            character.lower() != character
            or character.casefold() != character
            or unicodedata.normalize("NFKD", character) != character
            or unicodedata.combining(character)
            or character in seconds
        ):
            yield character


def _code_points() -> Iterator[int]:
    position = 0
    for first, end in (*_UNCHANGED, (LIMIT, LIMIT)):
        yield from range(position, first)
        position = end


@cache
def _composing() -> frozenset[str]:
    """Return the characters that can join the one before into one: second halves of compositions, vowels, finals."""
    decompositions = (unicodedata.decomposition(chr(code_point)).split() for code_point in _code_points())
    seconds = {chr(int(parts[1], 16)) for parts in decompositions if len(parts) == 2 and not parts[0].startswith("<")}
    return frozenset(seconds | {chr(jamo) for jamo in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))})


def _stands_alone(character: str) -> bool:
    """Tell whether no form of a character can join, or be reordered with, what stands before it."""
    folded = unicodedata.normalize("NFKC", character).casefold()
    forms = (character, folded, *(unicodedata.normalize("NFKD", text) for text in (character, folded)))
    return all(not unicodedata.combining(form[0]) and form[0] not in _composing() for form in forms)


def _folded(character: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())


class _Pool:
    """Bytes that several tables point to; equal texts stand once."""

    def __init__(self) -> None:
        self.bytes = bytearray(1)
        self._places: dict[bytes, int] = {}

    def place(self, character: str, text: str) -> int:
        """Return what a character that becomes `text` has in its table."""
        if text == character:
            return ITSELF if _WORD.match(character) else SEPARATOR
        written = "".join(part if _WORD.match(part) else " " for part in text)
        if not written.strip():
            return SEPARATOR
        encoded = written.encode()
        if encoded not in self._places:
            self._places[encoded] = len(self.bytes)
            self.bytes += bytes([len(encoded)]) + encoded
        return self._places[encoded]
