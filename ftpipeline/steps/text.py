"""What the data steps make of a text: one normal form, its words, and the cleaned text that a model learns from.

Law: `clean(clean(text).text).text == clean(text).text`, so that curating twice changes no digest.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ftpipeline.steps.markup import to_text
from ftpipeline.steps.pii import scrub
from ftpipeline.steps.replies import ALL_LANGUAGES, strip_reply

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
        was_markup: the text was HTML.
        quotes_left: a line of the text still starts with a quote mark.
    """

    text: str
    pii: Mapping[str, int]
    stripped: bool
    kept_whole: bool
    was_markup: bool = False
    quotes_left: bool = False


def clean(text: str, languages: tuple[str, ...] = ALL_LANGUAGES) -> Cleaned:
    """Remove markup, normalise, replace personal data by placeholders, and cut off quoted replies and the signature.

    Personal data goes before the cut: the decision to cut counts visible characters, which placeholders change. What is
    cut may bring together what was apart, so a text that changed its shape is cleaned until it changes no more.
    """
    pii: Counter[str] = Counter()
    stripped = was_markup = False
    while True:
        plain = to_text(text)
        scrubbed, found = scrub(normalise(plain.text))
        reply = strip_reply(scrubbed, languages)
        pii += found
        was_markup |= plain.was_markup
        stripped |= reply.stripped
        if not (plain.was_markup or reply.stripped) or reply.text == text:
            left = reply.text.startswith(">") or "\n>" in reply.text
            return Cleaned(reply.text, dict(pii), stripped, reply.kept_whole, was_markup, left)
        text = reply.text


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
