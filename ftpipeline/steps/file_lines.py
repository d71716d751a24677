"""Cuts a text file into lines whose place in the file is known to the byte.

Law: the line that begins at byte `b` is what the bytes from `b` on decode to, in the state that the decoder has there.
"""

import codecs
import re
from collections.abc import Iterator

from ftpipeline.errors import SourceError

_ENDS = re.compile(rb"[\r\n]")


class Lines:
    r"""Decodes lines one by one; bytes of another encoding become lone surrogates where the codec can do that.

    Args:
        data: the whole file.
        codec: name of a Python codec of texts.
        carriage_return_ends: whether a lone `\r` ends a line too; `\n` and `\r\n` always do.

    Attributes:
        position: bytes in front of the line that comes next.

    Raises:
        SourceError: while iterating, bytes that the codec cannot pass by.
    """

    def __init__(self, data: bytes, codec: str, *, carriage_return_ends: bool) -> None:
        self.position = 0
        self._lines = self._cut(data, codec, carriage_return_ends)

    def __iter__(self) -> Iterator[str]:
        """Lines are handed out once."""
        return self

    def __next__(self) -> str:
        """Return the next line with its end."""
        line, self.position = next(self._lines)
        return line

    def _cut(self, data: bytes, codec: str, carriage_return_ends: bool) -> Iterator[tuple[str, int]]:
        """Yield lines, each with the place behind it.

        A byte that looks like the end of a line is one only if the decoded text says so: in other encodings it may be a
        part of a character.
        """
        text, behind = "", 0
        for piece, end in _decoded(data, codec):
            if carriage_return_ends and text.endswith("\r") and piece and piece != "\n":
                yield text, behind
                text = ""
            text += piece
            behind = end
            if text.endswith("\n"):
                yield text, behind
                text = ""
        if text:
            yield text, behind


def _decoded(data: bytes, codec: str) -> Iterator[tuple[str, int]]:
    """Yield decoded pieces that end where a line may end, each with the bytes up to its end."""
    decoder = codecs.getincrementaldecoder(codec)(errors="surrogateescape")
    unit = len("\n\n".encode(codec)) - len("\n".encode(codec))  # a line's end takes several bytes in UTF-16 and UTF-32
    begin = 0
    for match in _ENDS.finditer(data):
        end = -(-match.end() // unit) * unit
        if end > begin:
            yield _text(decoder, data[begin:end], begin), end
            begin = end
    yield _text(decoder, data[begin:], begin, final=True), len(data)


def _text(decoder: codecs.IncrementalDecoder, data: bytes, begin: int, *, final: bool = False) -> str:
    waiting = len(decoder.getstate()[0])
    try:
        return decoder.decode(data, final)
    except UnicodeError as error:  # of a codec that cannot pass by what it does not know, or misses its first mark
        place = begin - waiting + (error.start if isinstance(error, UnicodeDecodeError) else 0)
        raise SourceError(f"source file: byte {place} is not in its encoding; correct source.file.encoding") from error
