"""Kernels for whole texts: equality, and short eval rows that stand in a longer text."""

from typing import TYPE_CHECKING

import numpy as np  # noqa: TID253  only functions load this module

from ftpipeline.steps.leakage.bits import ONE
from ftpipeline.steps.leakage.index import BASE, home_slot, number_of, outgoing, same_units
from ftpipeline.steps.leakage.jit import kernel
from ftpipeline.steps.leakage.layout import Found, Lookup, Units, Wanted

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array, Int

_LENGTH_FACTOR = np.uint64(0xD6E8FEB86659FD93)


@kernel
def _note(row: "Int", number: "Int", found: Found) -> None:
    place = found.taken[0]
    found.rows[place] = row
    found.trains[place] = number
    found.shares[place] = 1
    found.taken[0] = place + 1


@kernel
def _whole_key(total: np.uint64, units: "Int") -> np.uint64:
    """Return the key of a whole row by the sum of its hashes: the order, which does not count, is compared as text."""
    return np.uint64(total + np.uint64(units) * _LENGTH_FACTOR)


@kernel
def _insert(row: "Int", key: np.uint64, lookup: Lookup) -> None:
    lookup.keys[row] = key
    slot = home_slot(key, len(lookup.slots))
    head = np.int64(lookup.slots[slot])
    while head >= 0 and lookup.keys[head] != key:
        slot = (slot + ONE) & np.uint64(len(lookup.slots) - 1)
        head = np.int64(lookup.slots[slot])
    lookup.following[row] = head
    lookup.slots[slot] = row


@kernel
def index_wholes(evals: Units, lookup: Lookup) -> None:
    """Enter every eval row that has units, by all of them."""
    for row in range(len(evals.bounds) - 1):
        units = evals.bounds[row + 1] - evals.bounds[row]
        if units > 0:
            _insert(row, _whole_key(evals.sums[row], units), lookup)


@kernel
def find_equal(
    train: Units,
    first: "Int",
    rows: "Int",
    numbers: "Array",
    skipped: "Int",
    wanted: Wanted,
    every: bool,
    found: Found,
) -> "Int":
    """Look for eval rows with the same units as a training row.

    Args:
        train: units of the training rows.
        first: row of `train` to begin with.
        rows: rows of `train`.
        numbers: numbers of the training rows.
        skipped: flags of rows that are not looked at.
        wanted: the eval rows; `trains` becomes the lowest number of an equal training row.
        every: note every pair in `found`; if false, only the lowest number.
        found: room for pairs.

    Returns:
        The row to go on with when `found` was emptied; `rows` when there is none left.
    """
    evals, lookup, trains = wanted.evals, wanted.lookup, wanted.trains
    bounds, sums, flags = train.bounds, train.sums, train.flags
    slots, keys = lookup.slots, lookup.keys
    for i in range(first, rows):
        if every and found.taken[0] + len(keys) > len(found.rows):
            return i
        begin, end = bounds[i], bounds[i + 1]
        if begin == end or np.int64(flags[i]) & skipped != 0:
            continue
        row = number_of(_whole_key(sums[i], end - begin), slots, keys)
        while row >= 0:
            worth = every or trains[row] < 0 or trains[row] > numbers[i]
            own = evals.bounds[row]
            if (
                worth
                and evals.bounds[row + 1] - own == end - begin
                and same_units(evals, own, train, begin, end - begin)
            ):
                trains[row] = numbers[i]
                if every:
                    _note(row, numbers[i], found)
            row = np.int64(lookup.following[row])
    return rows


@kernel
def index_beginnings(evals: Units, rows: "Array", size: "Int", lookup: Lookup) -> None:
    """Enter the given eval rows by their first `size` units."""
    for row in rows:
        key = np.uint64(0)
        for i in range(evals.bounds[row], evals.bounds[row] + size):
            key = key * BASE + evals.hashes[i]
        _insert(row, key, lookup)


@kernel
def find_contained(
    train: Units,
    first: "Int",
    rows: "Int",
    offset: "Int",
    size: "Int",
    wanted: Wanted,
    every: bool,
    found: Found,
) -> "Int":
    """Look for training rows that hold all units of an eval row in a row; arguments as for `find_equal`.

    `size` is the number of units that eval rows were entered by, `offset` the number of row 0. A pair is noted once.
    """
    evals, lookup, trains = wanted.evals, wanted.lookup, wanted.trains
    leaving = outgoing(size - 1)
    latest = np.full(len(trains), -1, np.int64)
    bounds, hashes, slots, keys = train.bounds, train.hashes, lookup.slots, lookup.keys
    for i in range(first, rows):
        if every and found.taken[0] + len(trains) > len(found.rows):
            return i
        begin, end = bounds[i], bounds[i + 1]
        value = np.uint64(0)
        for unit in range(begin, end):
            value = value * BASE + hashes[unit]
            start = unit - size + 1
            if start < begin:
                continue
            row = number_of(value, slots, keys)
            value -= hashes[start] * leaving
            while row >= 0:
                length = evals.bounds[row + 1] - evals.bounds[row]
                is_new = latest[row] != i if every else trains[row] < 0
                if is_new and start + length <= end and same_units(evals, evals.bounds[row], train, start, length):
                    latest[row] = i
                    if every:
                        _note(row, offset + i, found)
                    else:
                        trains[row] = offset + i
                row = np.int64(lookup.following[row])
    return rows
