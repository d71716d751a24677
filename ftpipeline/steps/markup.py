"""Turns a ticket that came as HTML into the text that its reader saw; a text that is none is left as it is.

Laws: a text without a tag does not change, whatever brackets it holds; entities are decoded once; the result holds no
tag, so that a second run changes nothing. For the last law a decoded bracket that would read as a tag stays an entity.
"""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MIN_SHARE = 0.1
"""Share of the visible characters that must stand outside of quotes, or no quote is marked as one."""

_ELEMENTS = (
    "a|article|b|big|blockquote|body|br|center|code|dd|div|dl|dt|em|figure|font|footer|form|h[1-6]|head|header|hr|html|i"
    "|img|label|li|link|main|meta|ol|p|pre|s|section|small|span|strike|strong|style|script|sub|sup|table|tbody|td|tfoot"
    "|th|thead|title|tr|u|ul"
)
_TAG = re.compile(
    rf"""<!doctype\b[^<>]*+>|<(?P<close>/?)(?P<name>{_ELEMENTS}|o:p)
      (?P<attributes>(?:\s++[\w:.-]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'<>=]++))?+)*+)\s*+/?>""",
    re.IGNORECASE | re.VERBOSE,
)
_BREAKS = re.compile(r"br|hr|p|div|li|tr|h[1-6]|ul|ol|table|blockquote|section|article|header|footer|pre|d[dlt]|title")
_CELLS = ("td", "th")
_UNSEEN = ("style", "script", "head", "title")
_QUOTE_CLASS = re.compile(r"\bclass\s*=\s*[\"']?[^\"'>]*\b(?:gmail_quote|yahoo_quoted|moz-cite|protonmail_quote)")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True)
class Plain:
    """A text without markup.

    Attributes:
        text: what can be read; lines of quotes start with `> `.
        was_markup: the text was HTML.
    """

    text: str
    was_markup: bool


def to_text(text: str) -> Plain:
    """Return what a reader sees of a text."""
    if not any(tag["name"] for tag in _TAG.finditer(text)):
        return Plain(text, was_markup=False)
    lines = _lines(_pieces(_without_comments(text)))
    quoted = sum(len(line) for line, is_quoted in lines if is_quoted)
    whole = sum(len(line) for line, _ in lines)
    marks = whole - quoted >= MIN_SHARE * whole
    seen = "\n".join(f"> {line}" if is_quoted and marks else line for line, is_quoted in lines)
    return Plain(_TAG.sub(lambda tag: tag[0].replace("<", "&lt;"), seen), was_markup=True)


def _without_comments(text: str) -> str:
    pieces, position = [], 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start)) >= 0:
        pieces.append(text[position:start])
        position = end + 3
    return "".join([*pieces, text[position:]])


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield pieces of visible text, and whether they stand in a quote; a line break is a piece of its own."""
    tags = list(_TAG.finditer(text))
    last_close = {(tag["name"] or "").lower(): tag.start() for tag in tags if tag["close"]}
    position, unseen = 0, ""
    stack: list[tuple[str, bool]] = []
    for tag in tags:
        quoted = bool(stack) and stack[-1][1]
        name = (tag["name"] or "").lower()
        if not unseen:
            yield _decoded(text[position : tag.start()]), quoted
        position = tag.end()
        if unseen:
            unseen = "" if tag["close"] and name == unseen else unseen
        elif name in _UNSEEN and not tag["close"] and last_close.get(name, -1) > tag.start():
            unseen = name
        elif name:
            _nest(stack, tag, name)
            yield _separator(name), quoted
    yield _decoded(text[position:]), bool(stack) and stack[-1][1]


def _nest(stack: list[tuple[str, bool]], tag: re.Match[str], name: str) -> None:
    """Follow the elements that can be quotes, each with whether it stands in one; others need not be closed."""
    if name not in ("div", "blockquote"):
        return
    if not tag["close"]:
        in_quote = bool(stack) and stack[-1][1]
        is_quote = name == "blockquote" or bool(_QUOTE_CLASS.search(tag["attributes"]))
        stack.append((name, in_quote or is_quote))
    elif stack and stack[-1][0] == name:
        stack.pop()


def _separator(name: str) -> str:
    if _BREAKS.fullmatch(name):
        return "\n"
    return " " if name in _CELLS else ""


def _decoded(piece: str) -> str:
    return html.unescape(_BLANKS.sub(" ", piece))


def _lines(pieces: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Join pieces to lines that are not empty; a line is quoted if all of it is."""
    lines: list[tuple[str, bool]] = []
    line, quoted = "", True
    for piece, is_quoted in [*pieces, ("\n", False)]:
        if piece == "\n":
            if line.strip():
                lines.append((line.strip(), quoted))
            line, quoted = "", True
        elif piece:
            line += piece
            quoted = quoted and (is_quoted or not piece.strip())
    return lines
