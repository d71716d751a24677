r"""Kernels that cut texts into tokens: what `re.findall(r"\w+", text.lower())` finds, with a hash each.

A row of ASCII is read 64 bytes at a time: lower-cased eight bytes at once, one bit a byte that says whether it belongs
to a word, and tokens where the bits change. Any other row is first written out code point by code point, with blanks
for what separates words, and then read the same way.
"""

from typing import TYPE_CHECKING

import numpy as np  # noqa: TID253  only functions load this module

from ftpipeline.steps.leakage.bits import (
    BLANKS,
    BLOCK,
    ONE,
    ZERO,
    beyond_ascii,
    blanked_block,
    filled_mask,
    load,
    store,
    trailing_zeros,
    word_mask,
)
from ftpipeline.steps.leakage.jit import kernel
from ftpipeline.steps.leakage.layout import ITSELF, MALFORMED, NEEDS_PYTHON, SEPARATOR, UNDECIDED, Forms, Texts, Units

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array, Int

_ALL = ~np.uint64(0)
_FACTOR = np.uint64(0x9FB21C651E98DF25)
_TAIL_FACTOR = np.uint64(0xC2B2AE3D27D4EB4F)
_LENGTH_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF, _TOP_BIT = np.uint64(32), np.uint64(63)
# Of the bytes that may follow a leading byte: which bits mark them, how these are set, and the bits that they carry.
_MARKS, _CONTINUED, _SIX = np.uint64(0xC0C0C000), np.uint64(0x80808000), np.uint64(0x3F)
_BYTE = np.uint64(0xFF)


@kernel
def token_hash(text: "Array", start: "Int", end: "Int", seed: np.uint64) -> np.uint64:
    """Return the hash of the bytes from `start` to `end`, of which there is at least one."""
    size = end - start
    value = seed + np.uint64(size) * _LENGTH_FACTOR
    while size > 16:
        value = (value ^ load(text, start)) * _FACTOR
        value ^= value >> _HALF
        start += 8
        size -= 8
    # Without a branch on the length, which nobody could predict: up to eight bytes, and the last eight of more.
    head = load(text, start) & (_ALL >> np.uint64(64 - 8 * min(size, 8)))
    tail = load(text, end - 8) & (_ALL if size > 8 else ZERO)
    value = ((value ^ head) * _FACTOR) ^ (tail * _TAIL_FACTOR)
    return np.uint64(value ^ (value >> _HALF))


@kernel
def _note_edges(mask: np.uint64, carry: np.uint64, block: "Int", count: "Int", edges: "Array") -> "Int":
    """Note where words begin and end in a block of 64 bytes; return the number of edges so far."""
    changes = mask ^ ((mask << ONE) | carry)
    while changes != ZERO:
        edges[count] = block + trailing_zeros(changes)
        changes &= changes - ONE
        count += 1
    return count


@kernel
def _hash_tokens(
    first: "Int",
    edge_count: "Int",
    end: "Int",
    text: "Array",
    edges: "Array",
    hashes: "Array",
    seed: np.uint64,
) -> "tuple[Int, np.uint64]":
    """Close a token that reaches to the end of its row, and hash the row's tokens.

    Returns:
        The number of units, and the sum of the hashes.
    """
    if edge_count & 1:
        edges[edge_count] = end
        edge_count += 1
    last, total = edge_count >> 1, ZERO
    for unit in range(np.uint64(first), np.uint64(last)):
        edge = unit << ONE
        value = token_hash(text, np.int64(edges[edge]), np.int64(edges[edge | ONE]), seed)
        hashes[unit] = value
        total += value
    return last, total


@kernel
def _read_ascii(
    data: "Array", begin: "Int", end: "Int", at: "Int", edge_count: "Int", text: "Array", edges: "Array"
) -> "Int":
    """Write a row of ASCII in lower case from `at` on.

    Returns:
        The number of edges, or -1 if the row is no ASCII, or so near the end of the data that no block can be read.
    """
    carry = ZERO
    for block in range(begin, end, BLOCK):
        if block + BLOCK > len(data):
            return -1
        inside = _ALL >> np.uint64(max(0, BLOCK - (end - block)))
        if beyond_ascii(data, block) & inside != ZERO:
            return -1
        target = at + block - begin
        mask = word_mask(data, block, text, target) & inside
        edge_count = _note_edges(mask, carry, target, edge_count, edges)
        carry = mask >> _TOP_BIT
    return edge_count


@kernel
def _word_at(data: "Array", position: "Int") -> np.uint64:
    """Return the eight bytes from `position` on, zeros behind the end of the data."""
    if position + 8 <= len(data):
        return np.uint64(load(data, position))
    word = ZERO
    for i in range(len(data) - position):
        word |= np.uint64(data[position + i]) << np.uint64(8 * i)
    return word


@kernel
def _code_point(word: np.uint64, left: "Int") -> "tuple[Int, Int]":
    """Return the code point that a word begins with and its length in bytes; -1 if these are no UTF-8.

    No branch depends on the length of a valid code point, which nobody could predict.
    """
    lead = np.int64(word & _BYTE)
    if lead < 0x80:
        return lead, 1
    length = 2 + (lead >= 0xE0) + (lead >= 0xF0)
    own = ~(_ALL << np.uint64(8 * length))
    if lead < 0xC2 or lead > 0xF4 or length > left or (word & _MARKS & own) != (_CONTINUED & own):
        return -1, 1
    bits = (word & np.uint64(0x7F >> length)) << np.uint64(18)
    bits |= ((word >> np.uint64(8)) & _SIX) << np.uint64(12)
    bits |= ((word >> np.uint64(16)) & _SIX) << np.uint64(6)
    bits |= (word >> np.uint64(24)) & _SIX
    value = np.int64(bits >> np.uint64(24 - 6 * length))
    too_long = (length == 3 and value < 0x800) or (length == 4 and value < 0x10000)
    return (-1 if too_long or value > 0x10FFFF else value), length


@kernel
def _write(data: "Array", begin: "Int", end: "Int", at: "Int", text: "Array", forms: Forms) -> "tuple[Int, Int]":
    """Write a row out from `at` on, words and blanks; return where it ends and the flags of the row.

    What is written behind it, or for bytes beyond ASCII, is written again.
    """
    form_of, pool, traits = forms.form, forms.pool, forms.traits
    flags: Int = 0
    while begin < end:
        if begin + BLOCK <= len(data):
            beyond = blanked_block(data, begin, text, at)
            run = min(end - begin, BLOCK if beyond == ZERO else trailing_zeros(beyond))
            begin += run
            at += run
            if run == BLOCK or begin == end:
                continue
        word = _word_at(data, begin)
        value, length = _code_point(word, end - begin)
        form: Int = SEPARATOR
        if value < 0:
            flags |= MALFORMED
        elif value < len(form_of):
            form = np.int64(form_of[value])
            flags |= np.int64(traits[value])
        if form == UNDECIDED:
            flags |= NEEDS_PYTHON
        if form > 0:
            written = np.int64(pool[form])
            for i in range(written):
                text[at + i] = pool[form + 1 + i]
            at += written
        else:
            store(text, at, word if form == ITSELF else BLANKS)
            at += length if form == ITSELF else 1
        begin += length
    return at, flags


@kernel
def _read_written(at: "Int", end: "Int", edge_count: "Int", text: "Array", edges: "Array") -> "Int":
    """Return the number of edges after a row that was written out."""
    carry = ZERO
    for block in range(at, end, BLOCK):
        mask = filled_mask(text, block) & (_ALL >> np.uint64(max(0, BLOCK - (end - block))))
        edge_count = _note_edges(mask, carry, block, edge_count, edges)
        carry = mask >> _TOP_BIT
    return edge_count


@kernel
def tokenise(texts: Texts, rows: "Array", forms: Forms, units: Units, seed: np.uint64) -> None:
    """Cut the given rows of `texts` into tokens, in this order.

    A row with NEEDS_PYTHON or MALFORMED among its flags has no token.
    """
    # Arrays are taken out of their tuples once: every access to a field counts a reference.
    data, offsets = texts.data, texts.offsets
    text, edges, hashes, bounds = units.text, units.edges, units.hashes, units.bounds
    sums, row_flags = units.sums, units.flags
    at: Int = BLOCK
    count: Int = 0
    flags: Int = 0
    bounds[0] = 0
    for row in range(len(rows)):
        begin, end = offsets[rows[row]], offsets[rows[row] + 1]
        flags, written = 0, at + end - begin
        edge_count = _read_ascii(data, begin, end, at, 2 * count, text, edges)
        if edge_count < 0:
            written, flags = _write(data, begin, end, at, text, forms)
            unusable = flags & (NEEDS_PYTHON | MALFORMED) != 0
            edge_count = 2 * count if unusable else _read_written(at, written, 2 * count, text, edges)
        count, sums[row] = _hash_tokens(count, edge_count, written, text, edges, hashes, seed)
        at = (written + BLOCK) & ~(BLOCK - 1)
        row_flags[row] = flags
        bounds[row + 1] = count


@kernel
def characters(tokens: Units, rows: "Int", wanted: "Int", units: Units, seed: np.uint64) -> None:
    """Cut the tokens of rows that have the flag `wanted` into characters; `units` shares the text of `tokens`."""
    count = 0
    units.bounds[0] = 0
    for row in range(rows):
        total = ZERO
        if np.int64(tokens.flags[row]) & wanted != 0:
            for i in range(tokens.bounds[row], tokens.bounds[row + 1]):
                position = np.int64(tokens.edges[2 * i])
                end = np.int64(tokens.edges[2 * i + 1])
                while position < end:
                    following = position + 1
                    while following < end and tokens.text[following] & 0xC0 == 0x80:
                        following += 1
                    units.edges[2 * count] = position
                    units.edges[2 * count + 1] = following
                    value = token_hash(tokens.text, position, following, seed)
                    units.hashes[count] = value
                    total += value
                    count += 1
                    position = following
        units.sums[row] = total
        units.flags[row] = tokens.flags[row]
        units.bounds[row + 1] = count
