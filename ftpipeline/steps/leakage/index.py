"""Kernels that build what is known of the eval rows: their distinct shingles, rarest first, and where to look for them.

Shingles are told apart by a 64-bit polynomial of their units' hashes. While the index is built, equal hashes are
compared as text: if two different shingles share one, the index is built again with another seed. So the hash is
injective on the eval side, and a scan needs text only to confirm a success.
"""

from typing import TYPE_CHECKING

import numpy as np  # noqa: TID253  only functions load this module

from ftpipeline.steps.leakage.bits import ONE
from ftpipeline.steps.leakage.jit import kernel
from ftpipeline.steps.leakage.layout import Postings, Shingles, Units

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array, Int

BASE = np.uint64(0xD1B54A32D192ED03)
"""Base of the polynomial; odd, so that no unit is lost."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
_WORD = np.uint64(63)
_LOW, _MIDDLE, _HIGH = np.uint64(18), np.uint64(24), np.uint64(30)
_HALF = np.uint64(32)
_RANK_BITS = np.int64(32)


@kernel
def outgoing(size: "Int") -> np.uint64:
    """Return the factor that a unit has by the time it leaves a window of `size` units."""
    factor = np.uint64(1)
    for _ in range(size):
        factor *= BASE
    return factor


@kernel
def home_slot(key: np.uint64, slots: "Int") -> np.uint64:
    """Return where the search for a key begins in a table of `slots`, a power of two up to 2**32."""
    return ((key * _MIX) >> _HALF) & np.uint64(slots - 1)


@kernel
def _bloom_place(key: np.uint64, bloom: "Array") -> "tuple[np.uint64, np.uint64]":
    """Return the word of the filter that stands for a key, and its three bits there."""
    mixed = key * _MIX
    one, two, three = (mixed >> _LOW) & _WORD, (mixed >> _MIDDLE) & _WORD, (mixed >> _HIGH) & _WORD
    return (mixed >> np.uint64(36)) & np.uint64(len(bloom) - 1), (ONE << one) | (ONE << two) | (ONE << three)


@kernel
def may_have(key: np.uint64, bloom: "Array") -> np.uint64:
    """Return 1 if this key may be in the filter, else 0."""
    word, bits = _bloom_place(key, bloom)
    return np.uint64(bloom[word] & bits == bits)


@kernel
def number_of(key: np.uint64, slots: "Array", keys: "Array") -> "Int":
    """Return the number of the shingle with this key, or -1."""
    last = np.uint64(len(slots) - 1)
    slot = home_slot(key, len(slots))
    number = np.int64(slots[slot])
    while number >= 0 and keys[np.uint64(number)] != key:
        slot = (slot + ONE) & last
        number = np.int64(slots[slot])
    return number


@kernel
def same_units(left: Units, i: "Int", right: Units, j: "Int", size: "Int") -> bool:
    """Tell whether `size` units from `i` and from `j` on are the same text."""
    for k in range(size):
        start, other = np.int64(left.edges[2 * (i + k)]), np.int64(right.edges[2 * (j + k)])
        length = np.int64(left.edges[2 * (i + k) + 1]) - start
        if np.int64(right.edges[2 * (j + k) + 1]) - other != length:
            return False
        for byte in range(length):
            if left.text[start + byte] != right.text[other + byte]:
                return False
    return True


@kernel
def _add(key: np.uint64, total: "Int", slots: "Array", keys: "Array") -> "Int":
    """Return the number of a key, which is `total` for a new one."""
    slot = home_slot(key, len(slots))
    number = np.int64(slots[slot])
    while number >= 0:
        if keys[number] == key:
            return number
        slot = (slot + ONE) & np.uint64(len(slots) - 1)
        number = np.int64(slots[slot])
    slots[slot] = total
    keys[total] = key
    return total


@kernel
def number_shingles(evals: Units, size: "Int", shingles: Shingles, frequency: "Array") -> "Int":
    """Number the shingles of all eval rows and count the rows that have each.

    Returns:
        How many distinct shingles there are, -1 if two of them share a hash.
    """
    slots, keys, origins = shingles.slots, shingles.keys, shingles.origins
    hashes, bounds = evals.hashes, evals.bounds
    leaving = outgoing(size)
    latest = np.full(len(frequency), -1, np.int64)
    total, members = 0, 0
    for row in range(len(bounds) - 1):
        first = bounds[row]
        value = np.uint64(0)
        for i in range(first, bounds[row + 1]):
            value = value * BASE + hashes[i]
            if i - first >= size:
                value -= hashes[i - size] * leaving
            if i - first < size - 1:
                continue
            origin = i - size + 1
            number = _add(value, total, slots, keys)
            if number == total:
                origins[total] = origin
                total += 1
            elif not same_units(evals, origins[number], evals, origin, size):
                return -1
            if latest[number] != row:
                latest[number] = row
                frequency[number] += 1
                shingles.members[members] = number
                members += 1
        shingles.bounds[row + 1] = members
    return total


@kernel
def fill_filter(keys: "Array", bloom: "Array") -> None:
    """Enter all keys into an empty filter."""
    for key in keys:
        word, bits = _bloom_place(key, bloom)
        bloom[word] |= bits


@kernel
def sort_rarest_first(shingles: Shingles, frequency: "Array") -> None:
    """Order each row's shingles by the number of eval rows that have them, then by number."""
    ranked = np.empty(len(shingles.members), np.int64)
    for i in range(shingles.bounds[len(shingles.bounds) - 1]):
        number = np.int64(shingles.members[i])
        ranked[i] = (np.int64(frequency[number]) << _RANK_BITS) | number
    for row in range(len(shingles.bounds) - 1):
        begin, end = shingles.bounds[row], shingles.bounds[row + 1]
        ranked[begin:end].sort()
        for i in range(begin, end):
            shingles.members[i] = ranked[i] & 0x7FFFFFFF


@kernel
def count_postings(shingles: Shingles, slack: "Array", chosen: "Array", begins: "Array") -> "Int":
    """Set where each shingle's postings begin, and return how many there are.

    A row is posted under those of its `slack + 1` rarest shingles that are chosen; `chosen` goes with the members.
    """
    for row in range(len(shingles.bounds) - 1):
        begin = shingles.bounds[row]
        for i in range(begin, min(shingles.bounds[row + 1], begin + slack[row] + 1)):
            begins[shingles.members[i] + 1] += chosen[i]
    for number in range(1, len(begins)):
        begins[number] += begins[number - 1]
    return int(begins[len(begins) - 1])


@kernel
def fill_postings(shingles: Shingles, slack: "Array", chosen: "Array", postings: Postings) -> None:
    """Write the rows and ranks of all postings."""
    for row in range(len(shingles.bounds) - 1):
        begin = shingles.bounds[row]
        for i in range(begin, min(shingles.bounds[row + 1], begin + slack[row] + 1)):
            if not chosen[i]:
                continue
            number = shingles.members[i]
            place = postings.begins[number] + postings.lengths[number]
            postings.rows[place] = row
            postings.ranks[place] = i - begin
            postings.lengths[number] += 1


@kernel
def sweep(keys: "Array", slack: "Array", postings: Postings) -> None:
    """Remove the postings whose rank is too high by now, and make the filter anew of the shingles that keep one."""
    begins, lengths, rows, ranks, bloom = postings
    bloom[:] = 0
    for number in range(len(keys)):
        begin = begins[number]
        last = begin
        for i in range(begin, begin + lengths[number]):
            if ranks[i] <= slack[rows[i]]:
                rows[last], ranks[last] = rows[i], ranks[i]
                last += 1
        lengths[number] = last - begin
        if last > begin:
            word, bits = _bloom_place(keys[number], bloom)
            bloom[word] |= bits
