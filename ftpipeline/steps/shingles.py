"""Three-word shingles of a text as sorted 64-bit hashes."""

import hashlib
from typing import TYPE_CHECKING

from ftpipeline.steps.text import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHINGLE = 3
"""Words of a shingle; a shorter text is one shingle."""

# Odd constants of splitmix64 and xxHash: places of a shingle must not be interchangeable.
_PLACES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
_MASK = (1 << 64) - 1


class Shingler:
    """Turns texts into sets of shingles; it remembers the hash of every word it has met."""

    def __init__(self) -> None:
        """Know no word."""
        self._hashes: dict[str, int] = {}

    def shingles(self, text: str) -> "NDArray[np.uint64]":
        """Return the text's set of shingles, sorted, never empty."""
        import numpy as np

        hashes = [self._hashes.get(word) or self._learn(word) for word in words(text)]
        if len(hashes) < SHINGLE:
            whole = sum(value * place for value, place in zip(hashes, _PLACES, strict=False)) + len(hashes)
            return np.array([whole & _MASK], np.uint64)
        row = np.array(hashes, np.uint64)
        first, second, third = (np.uint64(place) for place in _PLACES)
        found = row[:-2] * first + row[1:-1] * second + row[2:] * third
        found.sort()
        distinct: NDArray[np.uint64] = found[np.append(True, found[1:] != found[:-1])]
        return distinct

    def _learn(self, word: str) -> int:
        hashed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        self._hashes[word] = hashed
        return hashed
