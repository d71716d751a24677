"""Texts as the kernels want them: bytes and offsets, from Python strings or from an Arrow column."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ftpipeline.errors import SourceError
from ftpipeline.steps.leakage.layout import Texts

if TYPE_CHECKING:
    import pyarrow


CHUNK_ROWS, CHUNK_BYTES = 2048, 1 << 20
"""Rows and bytes that are cut and searched together: what a processor's cache holds."""


def from_strings(strings: Sequence[str]) -> Texts:
    """Return strings as texts; a lone surrogate becomes its three bytes, and separates words."""
    import numpy as np

    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return Texts(np.frombuffer(b"".join(encoded), np.uint8), offsets)


def from_arrow(column: "pyarrow.Array", first: int = 0) -> Texts:
    """Return an Arrow column of strings as texts, without a copy where its type has plain offsets.

    Args:
        column: the column, or a piece of it.
        first: number of its first row, for messages.

    Raises:
        SourceError: the column holds something else than texts, or a null.
    """
    import numpy as np
    import pyarrow as pa

    if column.null_count:
        row = first + column.is_null().index(True).as_py()
        raise SourceError(f"row {row} has no text; leave such rows out, or give them one")
    if pa.types.is_dictionary(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise SourceError(f"the column holds {column.type}; name a column of texts")
    kind = np.int32 if pa.types.is_string(column.type) else np.int64
    _, offsets, data = column.buffers()
    if not len(column):
        return from_strings([])
    bounds = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
    content.flags.writeable = False
    return Texts(content, bounds)


def text_at(texts: Texts, row: int) -> str:
    """Return one text."""
    begin, end = texts.offsets[row], texts.offsets[row + 1]
    return texts.data[begin:end].tobytes().decode("utf-8", "surrogatepass")


def chunks(texts: Texts) -> Iterator[tuple[int, int]]:
    """Yield first and last row of pieces with at most CHUNK_ROWS rows and CHUNK_BYTES bytes, but at least one row."""
    rows = len(texts.offsets) - 1
    first = 0
    while first < rows:
        fitting = int(texts.offsets.searchsorted(texts.offsets[first] + CHUNK_BYTES, side="right")) - 1
        last = min(rows, first + CHUNK_ROWS, max(first + 1, fitting))
        yield first, last
        first = last


def batches(strings: Iterable[str]) -> Iterator[Texts]:
    """Yield a stream of strings in pieces."""
    waiting: list[str] = []
    for text in strings:
        waiting.append(text)
        if len(waiting) == CHUNK_ROWS:
            yield from_strings(waiting)
            waiting = []
    if waiting:
        yield from_strings(waiting)
