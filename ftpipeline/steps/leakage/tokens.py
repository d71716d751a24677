r"""Kernels that cut texts into tokens: what `re.findall(r"\w+", text.lower())` finds, with a hash each.

A row of ASCII is read 64 bytes at a time: lower-cased eight bytes at once, one bit a byte that says whether it belongs
to a word, and tokens where the bits change. Any other row is first written out code point by code point, with blanks
for what separates words, and then read the same way.
"""

from typing import TYPE_CHECKING

import numpy as np  # noqa: TID253  only functions load this module

from ftpipeline.steps.leakage.bits import (
    BLOCK,
    FLAGS,
    ONE,
    ZERO,
    beyond_ascii,
    blanked,
    filled_mask,
    load,
    lowered,
    store,
    trailing_zeros,
    word_flags,
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
_BLANK = np.uint8(0x20)


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
) -> "Int":
    """Close a token that reaches to the end of its row, and hash the row's tokens; return the number of units."""
    if edge_count & 1:
        edges[edge_count] = end
        edge_count += 1
    last = edge_count >> 1
    for unit in range(first, last):
        hashes[unit] = token_hash(text, np.int64(edges[2 * unit]), np.int64(edges[2 * unit + 1]), seed)
    return last


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
def _code_point(data: "Array", position: "Int", end: "Int") -> "tuple[Int, Int]":
    """Return the code point at `position` and its length in bytes; -1 if these are no UTF-8."""
    lead = np.int64(data[position])
    if lead < 0x80:
        return lead, 1
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC2 or lead > 0xF4 or position + length > end:
        return -1, 1
    value = lead & (0x7F >> length)
    for i in range(1, length):
        byte = np.int64(data[position + i])
        if byte & 0xC0 != 0x80:
            return -1, 1
        value = (value << 6) | (byte & 0x3F)
    too_long = (length == 3 and value < 0x800) or (length == 4 and value < 0x10000)
    return (-1 if too_long or value > 0x10FFFF else value), length


@kernel
def _write(data: "Array", begin: "Int", end: "Int", at: "Int", text: "Array", forms: Forms) -> "tuple[Int, Int]":
    """Write a row out from `at` on, words and blanks; return where it ends and the flags of the row."""
    form_of, pool, traits = forms.form, forms.pool, forms.traits
    flags: Int = 0
    while begin < end:
        if begin + 8 <= end:
            word = load(data, begin)
            beyond = word & FLAGS
            ascii_bytes = 8 if beyond == ZERO else trailing_zeros(beyond) >> 3
            word = lowered(word)
            store(text, at, blanked(word, word_flags(word)))  # what is no ASCII is written again
            begin += ascii_bytes
            at += ascii_bytes
            if ascii_bytes == 8:
                continue
        value, length = _code_point(data, begin, end)
        form: Int = SEPARATOR
        if value < 0:
            flags |= MALFORMED
        elif value < len(form_of):
            form = np.int64(form_of[value])
            flags |= np.int64(traits[value])
        if form == UNDECIDED:
            flags |= NEEDS_PYTHON
        if form < 0:
            text[at] = _BLANK
            at += 1
        elif form == ITSELF:
            for i in range(length):
                text[at + i] = data[begin + i]
            at += length
        else:
            written = np.int64(pool[form])
            for i in range(written):
                text[at + i] = pool[form + 1 + i]
            at += written
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
    text, edges, hashes, bounds, row_flags = units.text, units.edges, units.hashes, units.bounds, units.flags
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
        count = _hash_tokens(count, edge_count, written, text, edges, hashes, seed)
        at = (written + BLOCK) & ~(BLOCK - 1)
        row_flags[row] = flags
        bounds[row + 1] = count


@kernel
def characters(tokens: Units, rows: "Int", wanted: "Int", units: Units, seed: np.uint64) -> None:
    """Cut the tokens of rows that have the flag `wanted` into characters; `units` shares the text of `tokens`."""
    count = 0
    units.bounds[0] = 0
    for row in range(rows):
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
                    units.hashes[count] = token_hash(tokens.text, position, following, seed)
                    count += 1
                    position = following
        units.flags[row] = tokens.flags[row]
        units.bounds[row + 1] = count
