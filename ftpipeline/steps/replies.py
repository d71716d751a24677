"""Cuts quoted replies and signatures off a message, but never the message itself.

Law: stripping a stripped text changes nothing. Everything that may go is found first; then one decision is taken,
against the whole text: where too little of it would be left (a message inside its own quote), all of it is kept.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from ftpipeline.errors import PipelineFileError
from ftpipeline.steps.mail_phrases import LANGUAGES

MIN_SHARE = 0.1
"""Share of the visible characters that must be left, or nothing is cut."""

_SIGN_OFF_LINES, _SIGN_OFF_WIDTH = 6, 60  # a sign-off with its name, company and numbers is at most this large

_SEPARATOR = re.compile(r"--|_{8,}|-{2,} ?[^\W\d_][^-]{3,40}-{2,}")  # "-- ", Outlook's rule, "--- Original Message ---"
_HEADER = re.compile(r"[^\W\d_][\w -]{1,15}: ?\S?.*")

ALL_LANGUAGES = tuple(LANGUAGES)


@dataclass(frozen=True)
class _Marks:
    """What shows, in the declared languages, that the message is over."""

    device: re.Pattern[str]
    attribution: re.Pattern[str]
    sender: re.Pattern[str]
    sign_off: re.Pattern[str]


@lru_cache
def _marks(languages: tuple[str, ...]) -> _Marks:
    for name in languages:
        if name not in LANGUAGES:
            raise PipelineFileError(f"curate.languages holds {name!r}; use some of {', '.join(LANGUAGES)}")
    said = [LANGUAGES[name] for name in languages]
    opens, wrote = "|".join(one.opens for one in said), "|".join(one.wrote for one in said)
    sender, sign_off = "|".join(one.sender for one in said), "|".join(one.sign_off for one in said)
    return _Marks(
        re.compile(rf"(?:{'|'.join(one.device for one in said)})\b.{{0,40}}"),
        re.compile(rf"(?:{opens})\b.{{5,200}}\b(?:{wrote})\b.{{0,60}}:", re.IGNORECASE),
        re.compile(rf"(?:{sender}) ?: ?\S.*", re.IGNORECASE),
        re.compile(sign_off, re.IGNORECASE),
    )


@dataclass(frozen=True)
class Reply:
    """A message without what was cut off.

    Attributes:
        text: the message; empty when the text is a device signature alone.
        stripped: something was cut off.
        kept_whole: the cut would have left less than MIN_SHARE and was given up.
    """

    text: str
    stripped: bool
    kept_whole: bool


def strip_reply(text: str, languages: tuple[str, ...] = ALL_LANGUAGES) -> Reply:
    """Cut quoted replies and the signature off a normalised text.

    Args:
        text: the text.
        languages: codes of the languages whose phrases count, at least one; separators and `>` count in all of them.

    Raises:
        PipelineFileError: a language is not known.
    """
    marks = _marks(languages)
    lines = text.split("\n")
    if all(marks.device.fullmatch(line) for line in lines if line):
        return Reply("", stripped=bool(text), kept_whole=False)
    left = _stripped(lines, marks)
    if left == lines:
        return Reply(text, stripped=False, kept_whole=False)
    if _visible(left) < MIN_SHARE * _visible(lines):
        return Reply(text, stripped=False, kept_whole=True)
    return Reply("\n".join(left), stripped=True, kept_whole=False)


def _visible(lines: list[str]) -> int:
    return sum(len("".join(line.split())) for line in lines)


def _stripped(lines: list[str], marks: _Marks) -> list[str]:
    """Cut until nothing more can be cut."""
    while (shorter := _before_sign_off(_before_mark(_unquoted(lines, marks), marks), marks)) != lines:
        lines = shorter
    return lines


def _unquoted(lines: list[str], marks: _Marks) -> list[str]:
    """Drop `>` lines and the attribution right above them; an answer below the quote stays."""
    kept: list[str] = []
    for line in lines:
        if not line.startswith(">"):
            if line or (kept and kept[-1]):  # what stood around the quote leaves one empty line
                kept.append(line)
        elif kept and marks.attribution.fullmatch(kept[-1]):
            kept.pop()
    return kept


def _before_mark(lines: list[str], marks: _Marks) -> list[str]:
    """Keep what stands above the first line that starts a signature or an old mail."""
    for index in range(len(lines)):
        if _is_mark(lines, index, marks):
            return _without_empty_end(lines[:index])
    return _without_empty_end(lines)


def _is_mark(lines: list[str], index: int, marks: _Marks) -> bool:
    line = lines[index]
    if _SEPARATOR.fullmatch(line) or marks.device.fullmatch(line) or marks.attribution.fullmatch(line):
        return True
    following = lines[index + 1 : index + 3]
    return bool(marks.sender.fullmatch(line)) and len(following) == 2 and all(map(_HEADER.fullmatch, following))


def _before_sign_off(lines: list[str], marks: _Marks) -> list[str]:
    for index in range(max(0, len(lines) - _SIGN_OFF_LINES), len(lines)):
        short = all(len(line) <= _SIGN_OFF_WIDTH for line in lines[index:])
        if short and marks.sign_off.fullmatch(lines[index].rstrip(",.!")):
            return _without_empty_end(lines[:index])
    return lines


def _without_empty_end(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return lines[:end]
