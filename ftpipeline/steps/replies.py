"""Cuts quoted replies and signatures off a message, but never the message itself.

Law: stripping a stripped text changes nothing. Everything that may go is found first; then one decision is taken,
against the whole text: where too little of it would be left (a message inside its own quote), all of it is kept.
"""

import re
from dataclasses import dataclass

MIN_SHARE = 0.1
"""Share of the visible characters that must be left, or nothing is cut."""

_SIGN_OFF_LINES, _SIGN_OFF_WIDTH = 6, 60  # a sign-off with its name, company and numbers is at most this large

_DEVICE = re.compile(
    r"(?:Sent from my|Get Outlook for|Von meinem|Envoyé de mon|Enviado desde mi|Inviato da|Verstuurd vanaf mijn)"
    r"\b.{0,40}"
)
_SEPARATOR = re.compile(r"--|_{8,}|-{2,} ?[^\W\d_][^-]{3,40}-{2,}")  # "-- ", Outlook's rule, "--- Original Message ---"
_ATTRIBUTION = re.compile(
    r"(?:on|am|le|el|il|op|den|w dniu|em)\b.{5,200}"
    r"\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|skrev|napisał|napisała|escreveu)\b.{0,60}:",
    re.IGNORECASE,
)
_FROM = re.compile(r"(?:from|von|de|da|fra|från|van|od) ?: ?\S.*", re.IGNORECASE)
_HEADER = re.compile(r"[^\W\d_][\w -]{1,15}: ?\S?.*")
_SIGN_OFF = re.compile(
    r"(?:(?:kind|best|warm|many) )?(?:regards|wishes)|(?:many )?thanks|thank you|cheers|sincerely|yours(?: \w+)?"
    r"|mfg|(?:mit )?(?:freundlichen|viele|beste|liebe) grüßen?|cordialement|saludos|cordiali saluti"
    r"|met vriendelijke groet",
    re.IGNORECASE,
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


def strip_reply(text: str) -> Reply:
    """Cut quoted replies and the signature off a normalised text."""
    lines = text.split("\n")
    if all(_DEVICE.fullmatch(line) for line in lines if line):
        return Reply("", stripped=bool(text), kept_whole=False)
    left = _stripped(lines)
    if left == lines:
        return Reply(text, stripped=False, kept_whole=False)
    if _visible(left) < MIN_SHARE * _visible(lines):
        return Reply(text, stripped=False, kept_whole=True)
    return Reply("\n".join(left), stripped=True, kept_whole=False)


def _visible(lines: list[str]) -> int:
    return sum(len("".join(line.split())) for line in lines)


def _stripped(lines: list[str]) -> list[str]:
    """Cut until nothing more can be cut."""
    while (shorter := _before_sign_off(_before_mark(_unquoted(lines)))) != lines:
        lines = shorter
    return lines


def _unquoted(lines: list[str]) -> list[str]:
    """Drop `>` lines and the attribution right above them; an answer below the quote stays."""
    kept: list[str] = []
    for line in lines:
        if not line.startswith(">"):
            if line or (kept and kept[-1]):  # what stood around the quote leaves one empty line
                kept.append(line)
        elif kept and _ATTRIBUTION.fullmatch(kept[-1]):
            kept.pop()
    return kept


def _before_mark(lines: list[str]) -> list[str]:
    """Keep what stands above the first line that starts a signature or an old mail."""
    for index in range(len(lines)):
        if _is_mark(lines, index):
            return _without_empty_end(lines[:index])
    return _without_empty_end(lines)


def _is_mark(lines: list[str], index: int) -> bool:
    line = lines[index]
    if _SEPARATOR.fullmatch(line) or _DEVICE.fullmatch(line) or _ATTRIBUTION.fullmatch(line):
        return True
    following = lines[index + 1 : index + 3]
    return bool(_FROM.fullmatch(line)) and len(following) == 2 and all(map(_HEADER.fullmatch, following))


def _before_sign_off(lines: list[str]) -> list[str]:
    for index in range(max(0, len(lines) - _SIGN_OFF_LINES), len(lines)):
        short = all(len(line) <= _SIGN_OFF_WIDTH for line in lines[index:])
        if short and _SIGN_OFF.fullmatch(lines[index].rstrip(",.!")):
            return _without_empty_end(lines[:index])
    return lines


def _without_empty_end(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return lines[:end]
