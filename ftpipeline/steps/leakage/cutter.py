"""Cuts texts into units, with Python's help for the few rows that the tables do not decide."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ftpipeline.errors import SourceError
from ftpipeline.steps.leakage.forms import folded_forms, lower_forms, plain_forms
from ftpipeline.steps.leakage.layout import FOLDS_OTHERWISE, MALFORMED, NEEDS_PYTHON, SPACELESS, Forms, Texts, Units
from ftpipeline.steps.leakage.texts import chunks, from_strings, text_at
from ftpipeline.steps.text import words

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array

_LOWERED_GROWTH, _FOLDED_GROWTH = 2, 12
"""Most bytes that one byte of text becomes, rounded up; one token needs two of them but for the last of a row."""

_LARGEST = 2**31 - 1
PADDING = 8
"""Bytes that may be read behind the last unit."""


class Cutter:
    """Cuts texts into units whose hashes depend on a seed; what it returns stands until the next call of the method."""

    def __init__(self, seed: int) -> None:
        import numpy as np

        self._seed = np.uint64(seed)
        self._rooms: dict[str, Units] = {}

    def tokens(self, texts: Texts, first: int, last: int) -> Units:
        r"""Return the tokens of rows `first` to `last`: `\w+` of the lower-cased texts.

        Raises:
            SourceError: a text is not UTF-8.
        """
        import numpy as np

        rows = np.arange(first, last)
        units = self._cut("lowered", texts, rows, lower_forms())
        flags = units.flags[: len(rows)]
        if not (flags & NEEDS_PYTHON).any():
            return units
        strings = [text_at(texts, row) for row in range(first, last)]
        lowered = from_strings(
            [text.lower() if flag & NEEDS_PYTHON else text for text, flag in zip(strings, flags, strict=True)]
        )
        known = flags & (FOLDS_OTHERWISE | SPACELESS)
        units = self._cut("lowered", lowered, rows - first, lower_forms())
        units.flags[: len(rows)] |= known
        return units

    def folded(self, texts: Texts, rows: "Array") -> list[tuple["Array", Units]]:
        """Return the units of the given rows' `words`, in two parts with the rows that each is of.

        A text without words has no unit.
        """
        import numpy as np

        units = self._cut("folded", texts, rows, folded_forms())
        undecided = rows[units.flags[: len(rows)] & NEEDS_PYTHON != 0]
        if not len(undecided):
            return [(rows, units)]
        strings = [" ".join(words(text_at(texts, row))) for row in undecided.tolist()]
        rest = self._cut("plain", from_strings(strings), np.arange(len(strings)), plain_forms())
        return [(rows, units), (undecided, rest)]

    def characters(self, tokens: Units, rows: int) -> Units:
        """Return the tokens of rows with a script without blanks as characters; other rows have no unit."""
        from ftpipeline.steps.leakage.tokens import characters

        size = int(tokens.bounds[rows]) and int(tokens.edges[2 * tokens.bounds[rows] - 1])
        units = self._room("characters", rows, size, _LOWERED_GROWTH)._replace(text=tokens.text)
        characters(tokens, rows, SPACELESS, units, self._seed)
        return units

    def all_tokens(self, texts: Texts) -> Units:
        """Return the tokens of all texts, in arrays of their own."""
        return joined([kept(self.tokens(texts, first, last), last - first) for first, last in chunks(texts)])

    def all_folded(self, texts: Texts) -> tuple["Array", Units]:
        """Return the units of all texts' `words`, in arrays of their own, and the text that each row is of."""
        import numpy as np

        parts = [
            (rows, kept(units, len(rows)))
            for first, last in chunks(texts)
            for rows, units in self.folded(texts, np.arange(first, last))
        ]
        owners = [rows for rows, _ in parts]
        return np.concatenate([np.empty(0, np.int64), *owners]), joined([units for _, units in parts])

    def _cut(self, name: str, texts: Texts, rows: "Array", forms: Forms) -> Units:
        from ftpipeline.steps.leakage.tokens import tokenise

        size = int((texts.offsets[rows + 1] - texts.offsets[rows]).sum())
        growth = _FOLDED_GROWTH if name == "folded" else _LOWERED_GROWTH
        units = self._room(name, len(rows), size, growth)
        tokenise(texts, rows, forms, units, self._seed)
        malformed = rows[units.flags[: len(rows)] & MALFORMED != 0]
        if len(malformed):
            raise SourceError(f"row {malformed[0]} is not UTF-8; write the file again in UTF-8")
        return units

    def _room(self, name: str, rows: int, size: int, growth: int) -> Units:
        """Return arrays that are large enough, those of the last call if they are; untouched pages take no memory."""
        import numpy as np

        room = self._rooms.get(name)
        text, units = growth * size + 64 * (rows + 3), growth * size // 2 + rows + 1
        if room is None or len(room.text) < text or len(room.hashes) < units or len(room.flags) < rows:
            if text > _LARGEST:
                raise SourceError(f"{size} bytes of text are too many to be compared at once; split the rows")
            room = self._rooms[name] = Units(
                np.empty(text, np.uint8),
                np.empty(2 * units, np.int32),
                np.empty(units, np.uint64),
                np.empty(rows + 1, np.int64),
                np.empty(rows, np.uint64),
                np.empty(rows, np.uint8),
            )
        return room


def kept(units: Units, rows: int) -> Units:
    """Return a copy of the first rows of `units` that holds nothing else."""
    count = int(units.bounds[rows])
    size = int(units.edges[2 * count - 1]) if count else 0
    return Units(
        units.text[: size + PADDING].copy(),
        units.edges[: 2 * count].copy(),
        units.hashes[:count].copy(),
        units.bounds[: rows + 1].copy(),
        units.sums[:rows].copy(),
        units.flags[:rows].copy(),
    )


def joined(parts: Sequence[Units]) -> Units:
    """Return units one after the other.

    Raises:
        SourceError: their text is too large.
    """
    import numpy as np

    texts = np.cumsum([0, *(len(part.text) for part in parts)])
    counts = np.cumsum([0, *(len(part.hashes) for part in parts)])
    if texts[-1] > _LARGEST:
        raise SourceError(f"the eval rows hold {texts[-1]} bytes of text, more than {_LARGEST}; check them in parts")
    empty = Units(
        np.empty(0, np.uint8),
        np.empty(0, np.int32),
        np.empty(0, np.uint64),
        np.zeros(1, np.int64),
        np.empty(0, np.uint64),
        np.empty(0, np.uint8),
    )
    return Units(
        np.concatenate([empty.text, *(part.text for part in parts)]),
        np.concatenate([empty.edges, *(part.edges + np.int32(at) for part, at in zip(parts, texts, strict=False))]),
        np.concatenate([empty.hashes, *(part.hashes for part in parts)]),
        np.concatenate(
            [np.zeros(1, np.int64), *(part.bounds[1:] + at for part, at in zip(parts, counts, strict=False))]
        ),
        np.concatenate([empty.sums, *(part.sums for part in parts)]),
        np.concatenate([empty.flags, *(part.flags for part in parts)]),
    )
