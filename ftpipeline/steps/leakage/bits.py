"""Operations on many bytes of text at a time: blocks of 64 as vectors, and words of 8.

A *mask* has one bit a byte of a block, the first byte's lowest.
"""

from importlib import import_module
from typing import Any

import numpy as np  # noqa: TID253  only functions load this module

from ftpipeline.steps.leakage.jit import intrinsic

BLOCK = 64
"""Bytes of a block."""

ZERO, ONE = np.uint64(0), np.uint64(1)
BLANKS = np.uint64(0x2020202020202020)


@intrinsic
def trailing_zeros(typing: Any, word: Any) -> Any:
    """Return how many zero bits stand below the lowest one of a word that is not zero."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], _ir().Constant(_ir().IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def beyond_ascii(typing: Any, data: Any, position: Any) -> Any:
    """Return the mask of bytes that are no ASCII in the block from `position` on; no bound is checked."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(_block(context, builder, signature, arguments, 0), align=1)
        return _mask(builder, builder.icmp_signed("<", block, _filled_with(0)))

    return types.uint64(data, types.int64), generate


@intrinsic
def word_mask(typing: Any, data: Any, position: Any, text: Any, target: Any) -> Any:
    """Write a block of ASCII in lower case to `target` in `text` and return the mask of its word bytes."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(_block(context, builder, signature, arguments, 0), align=1)
        lower, in_word = _lowered_words(builder, block)
        builder.store(lower, _block(context, builder, signature, arguments, 2), align=1)
        return _mask(builder, in_word)

    return types.uint64(data, types.int64, text, types.int64), generate


@intrinsic
def blanked_block(typing: Any, data: Any, position: Any, text: Any, target: Any) -> Any:
    """Write a block to `target` in `text`, words in lower case and blanks; return the mask of bytes beyond ASCII."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(_block(context, builder, signature, arguments, 0), align=1)
        lower, in_word = _lowered_words(builder, block)
        blanked = builder.select(in_word, lower, _filled_with(ord(" ")))
        builder.store(blanked, _block(context, builder, signature, arguments, 2), align=1)
        return _mask(builder, builder.icmp_signed("<", block, _filled_with(0)))

    return types.uint64(data, types.int64, text, types.int64), generate


def _lowered_words(builder: Any, block: Any) -> tuple[Any, Any]:
    """Return a block with A to Z as a to z, and which of its bytes are letters, digits and underscores."""

    def within(block: Any, first: str, last: str) -> Any:
        distance = builder.sub(block, _filled_with(ord(first)))
        return builder.icmp_unsigned("<=", distance, _filled_with(ord(last) - ord(first)))

    small = builder.add(block, _filled_with(ord("a") - ord("A")))
    lower = builder.select(within(block, "A", "Z"), small, block)
    underscores = builder.icmp_unsigned("==", lower, _filled_with(ord("_")))
    return lower, builder.or_(builder.or_(within(lower, "a", "z"), within(lower, "0", "9")), underscores)


@intrinsic
def filled_mask(typing: Any, text: Any, position: Any) -> Any:
    """Return the mask of bytes that are no blanks in the block from `position` on; no bound is checked."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(_block(context, builder, signature, arguments, 0), align=1)
        return _mask(builder, builder.icmp_unsigned("!=", block, _filled_with(ord(" "))))

    return types.uint64(text, types.int64), generate


def _block(context: Any, builder: Any, signature: Any, arguments: Any, place: int) -> Any:
    """Return the address of the block that argument `place`, an array, has at the argument behind it."""
    base = context.make_array(signature.args[place])(context, builder, arguments[place]).data
    return builder.bitcast(builder.gep(base, [arguments[place + 1]]), _block_type().as_pointer())


def _ir() -> Any:
    """Return the code generator of numba's extension interface, which numba brings along."""
    return import_module("llvmlite.ir")


def _block_type() -> Any:
    return _ir().VectorType(_ir().IntType(8), BLOCK)


def _filled_with(byte: int) -> Any:
    return _ir().Constant(_block_type(), [byte] * BLOCK)


def _mask(builder: Any, truths: Any) -> Any:
    return builder.bitcast(truths, _ir().IntType(BLOCK))


@intrinsic
def load(typing: Any, data: Any, position: Any) -> Any:
    """Return the eight bytes of `data` from `position` on as one word; no bound is checked."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = builder.bitcast(builder.gep(base, [arguments[1]]), _ir().IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(data, types.int64), generate


@intrinsic
def store(typing: Any, data: Any, position: Any, value: Any) -> Any:
    """Write a word as the eight bytes of `data` from `position` on; no bound is checked."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = builder.bitcast(builder.gep(base, [arguments[1]]), _ir().IntType(64).as_pointer())
        builder.store(arguments[2], word, align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint64), generate
