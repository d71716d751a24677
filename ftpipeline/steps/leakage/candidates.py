"""Kernels of MinHash: the signature of a row is, in each bin, its shingle with the smallest mixed hash.

One permutation serves all bins, and a band is one bin; a bin without a shingle matches none.
"""

from typing import TYPE_CHECKING

import numpy as np  # noqa: TID253  only functions load this module

from ftpipeline.steps.leakage.index import BASE, may_have, number_of
from ftpipeline.steps.leakage.jit import kernel
from ftpipeline.steps.leakage.layout import Shingles

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array, Int

_MIX = np.uint64(0xA0761D6478BD642F)
_HALF = np.uint64(32)
_NONE = ~np.uint64(0)


@kernel
def _mixed(key: np.uint64) -> np.uint64:
    """Return the number that orders shingles, and whose lowest bits tell the bin."""
    value = (key ^ (key >> _HALF)) * _MIX
    return value ^ (value >> _HALF)


@kernel
def _bin(mixed: np.uint64, bins: "Int") -> "Int":
    return np.int64(mixed & np.uint64(bins - 1))


@kernel
def choose_minima(shingles: Shingles, bins: "Int", chosen: "Array") -> None:
    """Mark the members of every eval row that are the smallest of their bin."""
    members, bounds, keys = shingles.members, shingles.bounds, shingles.keys
    smallest = np.empty(bins, np.uint64)
    for row in range(len(bounds) - 1):
        smallest[:] = _NONE
        for i in range(bounds[row], bounds[row + 1]):
            mixed = _mixed(keys[members[i]])
            smallest[_bin(mixed, bins)] = min(smallest[_bin(mixed, bins)], mixed)
        for i in range(bounds[row], bounds[row + 1]):
            mixed = _mixed(keys[members[i]])
            chosen[i] = smallest[_bin(mixed, bins)] == mixed


@kernel
def sign(
    first: "Int",
    last: "Int",
    size: "Int",
    leaving: np.uint64,
    hashes: "Array",
    smallest: "Array",
    signature: "Array",
) -> None:
    """Set the key of the smallest window by bin; a bin that stays empty keeps `_NONE` in `smallest`."""
    smallest[:] = _NONE
    value = np.uint64(0)
    for i in range(first, last):
        value = value * BASE + hashes[i]
        if i - first < size - 1:
            continue
        mixed = _mixed(value)
        place = _bin(mixed, len(smallest))
        if mixed < smallest[place]:
            smallest[place] = mixed
            signature[place] = value
        value -= hashes[i - size + 1] * leaving


@kernel
def posted_minima(
    smallest: "Array",
    signature: "Array",
    bloom: "Array",
    slots: "Array",
    keys: "Array",
    minima: "Array",
) -> "Int":
    """Note the minima under which eval rows are posted; return how many there are."""
    count = 0
    for place in range(len(smallest)):
        if smallest[place] != _NONE and may_have(signature[place], bloom):
            number = number_of(signature[place], slots, keys)
            if number >= 0:
                minima[count] = number
                count += 1
    return count
