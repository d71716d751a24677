"""What the data steps make of a text: one normal form, its words, and the cleaned text that a model learns from.

Law: `clean(clean(text).text).text == clean(text).text`, so that curating twice changes no digest.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from ftpipeline.steps.pii import scrub
from ftpipeline.steps.replies import strip_reply

# Zero-width space, word joiner, byte order mark, soft hyphen and direction marks carry no text. The joiners U+200C and
# U+200D stay: Persian and Indic spelling and composed emoji need them.
_INVISIBLE = dict.fromkeys(
    (0x00AD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)
_BLANKS = re.compile(r"[^\S\n]+")
_AROUND_LINE_END = re.compile(r" ?\n ?")
_EMPTY_LINES = re.compile(r"\n{3,}")
_EXCERPT = 80  # characters
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Cleaned:
    """A cleaned text and what was done to it.

    Attributes:
        text: the text to learn from; empty when nothing but a signature was there.
        pii: placeholder to number of replacements.
        stripped: a quoted reply or a signature was cut off.
        kept_whole: a cut was given up, because it would have left too little of the message.
    """

    text: str
    pii: Mapping[str, int]
    stripped: bool
    kept_whole: bool


def clean(text: str) -> Cleaned:
    """Normalise a text, replace personal data by placeholders, and cut off quoted replies and the signature.

    Personal data goes first: the decision to cut counts visible characters, which placeholders change.
    """
    scrubbed, pii = scrub(normalise(text))
    reply = strip_reply(scrubbed)
    return Cleaned(reply.text, pii, reply.stripped, reply.kept_whole)


def excerpt(text: str) -> str:
    """Return the start of a text on one line, personal data replaced, characters that cannot be seen escaped.

    The whole text is scrubbed first: a number that the cut halves would not be known as one.
    """
    scrubbed, _ = scrub(" ".join(text.split()))
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in scrubbed[:_EXCERPT])


def normalise(text: str) -> str:
    """Return the text in NFC, with LF line ends, no invisible characters, single blanks and at most one empty line."""
    visible = unicodedata.normalize("NFC", text.translate(_INVISIBLE))
    lines = "\n".join(visible.splitlines())
    single = _AROUND_LINE_END.sub("\n", _BLANKS.sub(" ", lines))
    return _EMPTY_LINES.sub("\n\n", single).strip()


def words(text: str) -> tuple[str, ...]:
    r"""Return the text's `\w+` tokens after NFKC and case folding; a text without any is its own only word.

    Two texts are *equal* when their words are.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return tuple(_WORD.findall(folded)) or (folded.strip(),)
