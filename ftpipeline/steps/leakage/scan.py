"""The kernel that streams training rows past the index of shingles.

By pigeonhole, a training row that has all but `slack` of an eval row's shingles has one of its `slack + 1` rarest: only
those are posted. A row that is found raises the bar: only more shingles would be better, so its slack falls and its
postings of higher rank are removed when they are next met, or by the next sweep. What thousands of rows share is soon
posted nowhere, and then a filter keeps its windows from being looked up. Only a training row that meets a posting is
looked up whole.
"""

from typing import TYPE_CHECKING

import numpy as np  # noqa: TID253  only functions load this module

from ftpipeline.steps.leakage.bits import ONE, ZERO
from ftpipeline.steps.leakage.candidates import posted_minima, sign
from ftpipeline.steps.leakage.index import BASE, home_slot, may_have, number_of, outgoing, same_units
from ftpipeline.steps.leakage.jit import kernel
from ftpipeline.steps.leakage.layout import Found, Postings, Progress, Shingles, Units

if TYPE_CHECKING:
    from ftpipeline.steps.leakage.layout import Array, Int

TOUCHES, VERIFICATIONS, SUCCESSES = 0, 1, 2
"""Places of the counters."""

MOST_LIKELY = 4
"""A row of which one unit in so many begins a likely window is looked up whole at once, not these windows first."""


@kernel
def likely_windows(
    first: "Int",
    last: "Int",
    size: "Int",
    leaving: np.uint64,
    hashes: "Array",
    bloom: "Array",
    likely: "Array",
    values: "Array",
) -> "Int":
    """Note the windows that a filter lets pass, and their hashes; return how many there are.

    No branch depends on the filter: a wrong guess would cost more than a hash that is written and overwritten.
    """
    if last - first < size:
        return 0
    value = np.uint64(0)
    for i in range(first, first + size - 1):
        value = value * BASE + hashes[i]
    count, ahead = ZERO, np.uint64(size - 1)
    for i in range(np.uint64(first), np.uint64(last - size + 1)):
        value = value * BASE + hashes[i + ahead]
        likely[count] = i
        values[count] = value
        count += may_have(value, bloom)
        value -= hashes[i] * leaving
    return np.int64(count)


@kernel
def posted_numbers(count: "Int", values: "Array", slots: "Array", keys: "Array", posted: "Array") -> "Int":
    """Note the numbers of the shingles among so many hashes; return how many there are."""
    found: Int = 0
    for j in range(count):
        number = number_of(values[j], slots, keys)
        if number >= 0:
            posted[found] = number
            found += 1
    return found


@kernel
def hold(
    count: "Int",
    stamp: "Int",
    likely: "Array",
    values: "Array",
    slots: "Array",
    keys: "Array",
    seen: "Array",
    held: "Array",
) -> "Int":
    """Note the distinct shingles among the likely windows, each with one window; return how many there are.

    All slots are read before any is needed: the memory answers many questions in the time of one. After a hit the next
    number is tried first: copied text runs through the numbers in order.
    """
    for j in range(np.uint64(count)):
        held[j] = slots[home_slot(values[j], len(slots))]
    kept, total = ZERO, np.uint64(len(keys))
    number: Int = -1
    for j in range(np.uint64(count)):
        value, guess = values[j], np.uint64(number + 1)
        if guess < total and keys[guess] == value:
            number = np.int64(guess)
        else:
            number = np.int64(held[j])
            if number >= 0 and keys[np.uint64(number)] != value:
                number = number_of(value, slots, keys)
        if number >= 0 and seen[np.uint64(number)] != stamp:
            seen[np.uint64(number)] = stamp
            held[kept] = number
            likely[kept] = likely[j]
            kept += ONE
    return np.int64(kept)


@kernel
def has_enough(row: "Int", stamp: "Int", members: "Array", bounds: "Array", seen: "Array", slack: "Array") -> bool:
    """Tell whether the training row lacks no more of the eval row's shingles than its slack, rarest first."""
    missing, allowed = 0, slack[row]
    for i in range(bounds[row], bounds[row + 1]):
        if seen[members[i]] != stamp:
            missing += 1
            if missing > allowed:
                return False
    return True


@kernel
def confirmed(
    row: "Int", stamp: "Int", held: "Int", evals: Units, train: Units, size: "Int", shingles: Shingles, state: Progress
) -> "Int":
    """Return how many of the eval row's shingles stand in the training row's text; no hash is trusted."""
    for j in range(held):
        state.places[state.held[j]] = state.windows[j]
    count = 0
    for i in range(shingles.bounds[row], shingles.bounds[row + 1]):
        number = shingles.members[i]
        if state.seen[number] == stamp:
            count += same_units(evals, shingles.origins[number], train, state.places[number], size)
    return count


@kernel
def succeed(
    row: "Int",
    stamp: "Int",
    held: "Int",
    evals: Units,
    train: Units,
    size: "Int",
    shingles: Shingles,
    state: Progress,
    every: bool,
    found: Found,
) -> None:
    """Note that an eval row was found in the training row that was collected last, if its text says so too."""
    count = confirmed(row, stamp, held, evals, train, size, shingles, state)
    missing = shingles.bounds[row + 1] - shingles.bounds[row] - count
    if missing > state.slack[row]:
        return
    state.counters[SUCCESSES] += 1
    if every:
        place = found.taken[0]
        found.rows[place] = row
        found.trains[place] = stamp
        found.shares[place] = count
        found.taken[0] = place + 1
    else:
        state.best[row] = count
        state.trains[row] = stamp
        state.slack[row] = missing - 1


@kernel
def note_due(
    number: "Int",
    stamp: "Int",
    begins: "Array",
    lengths: "Array",
    posted: "Array",
    ranks: "Array",
    slack: "Array",
    checked: "Array",
    counters: "Array",
    due: "Array",
) -> "Int":
    """Note the rows that a shingle is posted for and the training row was not compared with; return how many there are.

    Postings of a rank that is too high by now are removed.
    """
    count = 0
    k, last = begins[number], begins[number] + lengths[number]
    while k < last:
        counters[TOUCHES] += 1
        row = np.int64(posted[k])
        if ranks[k] > slack[row]:
            last -= 1
            posted[k], ranks[k] = posted[last], ranks[last]
            continue
        if checked[row] != stamp:
            checked[row] = stamp
            due[count] = row
            count += 1
        k += 1
    lengths[number] = last - begins[number]
    counters[VERIFICATIONS] += count
    return count


@kernel
def scan(
    train: Units,
    first: "Int",
    rows: "Int",
    offset: "Int",
    evals: Units,
    size: "Int",
    shingles: Shingles,
    postings: Postings,
    state: Progress,
    bins: "Int",
    every: bool,
    found: Found,
) -> "Int":
    """Look for eval rows in training rows from row `first` of `train` on; its row 0 has the number `offset`.

    If there are `bins`, only the minima of a MinHash signature make candidates. With `every`, all pairs with enough
    shingles are noted in `found`; otherwise the best training row of each eval row is, in `state`. Return the row to
    go on with when `found` was emptied, `rows` when there is none left.
    """
    # Arrays are taken out of their tuples once: every access to a field counts a reference, every call copies a tuple.
    unit_bounds, hashes = train.bounds, train.hashes
    slots, keys, known = shingles.slots, shingles.keys, shingles.bloom
    members, bounds = shingles.members, shingles.bounds
    begins, lengths, posted_rows, ranks, bloom = postings
    posted, all_numbers, windows, values, seen = state.posted, state.held, state.windows, state.values, state.seen
    slack, checked, counters = state.slack, state.checked, state.counters
    smallest, signature = np.empty(bins, np.uint64), np.empty(bins, np.uint64)
    due, leaving = np.empty(len(slack), np.int32), outgoing(size - 1)
    for i in range(first, rows):
        if every and found.taken[0] + len(slack) > len(found.rows):
            return i
        stamp = offset + i
        begin, end = unit_bounds[i], unit_bounds[i + 1]
        held: Int = -1
        numbers = posted
        if bins > 0:
            sign(begin, end, size, leaving, hashes, smallest, signature)
            candidates = posted_minima(smallest, signature, bloom, slots, keys, posted)
        else:
            likely = likely_windows(begin, end, size, leaving, hashes, bloom, windows, values)
            if likely * MOST_LIKELY > end - begin:
                likely = likely_windows(begin, end, size, leaving, hashes, known, windows, values)
                held = candidates = hold(likely, stamp, windows, values, slots, keys, seen, all_numbers)
                numbers = all_numbers
            else:
                candidates = posted_numbers(likely, values, slots, keys, posted)
        for j in range(candidates):
            number = np.int64(numbers[j])
            for k in range(note_due(number, stamp, begins, lengths, posted_rows, ranks, slack, checked, counters, due)):
                row = np.int64(due[k])
                if held < 0:
                    likely = likely_windows(begin, end, size, leaving, hashes, known, windows, values)
                    held = hold(likely, stamp, windows, values, slots, keys, seen, all_numbers)
                if has_enough(row, stamp, members, bounds, seen, slack):
                    succeed(row, stamp, held, evals, train, size, shingles, state, every, found)
    return rows
