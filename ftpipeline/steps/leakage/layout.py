"""The arrays that kernels work on, by name; all are one-dimensional."""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    Int: TypeAlias = int | np.signedinteger[Any]

SEPARATOR, ITSELF, UNDECIDED = -1, 0, -2
"""What a code point becomes beside a place in the pool: a blank, its own bytes, or what Python makes of its row."""

FOLDS_OTHERWISE, SPACELESS, NEEDS_PYTHON, MALFORMED = 1, 2, 4, 8
"""Flags of a row: its words under `words` may differ from its tokens; it holds a script without blanks; it holds a code
point that only Python can lower or fold; it is not UTF-8."""


class Texts(NamedTuple):
    """Texts as UTF-8; text `i` is `data[offsets[i]:offsets[i + 1]]`."""

    data: "NDArray[np.uint8]"
    offsets: "NDArray[np.int64]"


class Forms(NamedTuple):
    """How code points are written: `form` by code point, and the bytes that it may point to.

    At `pool[form]` stand a length and as many bytes of words and blanks. `traits` holds the first two row flags by code
    point. Code points beyond the tables are separators.
    """

    form: "NDArray[np.int32]"
    pool: "NDArray[np.uint8]"
    traits: "NDArray[np.uint8]"


class Units(NamedTuple):
    """Texts cut into units (tokens or characters); those of row `i` are `bounds[i]` to `bounds[i + 1]`.

    Unit `i` is `text[edges[2 * i]:edges[2 * i + 1]]`, lower-cased UTF-8, and has a hash; `sums` are those of the hashes
    of each row. Eight more bytes of `text` may be read before and behind a unit.
    """

    text: "NDArray[np.uint8]"
    edges: "NDArray[np.int32]"
    hashes: "NDArray[np.uint64]"
    bounds: "NDArray[np.int64]"
    sums: "NDArray[np.uint64]"
    flags: "NDArray[np.uint8]"


class Shingles(NamedTuple):
    """The distinct shingles of the eval rows, numbered in the order in which they first appear.

    `slots` is an open-addressing table of numbers (-1 is free), `bloom` a filter of one word a key in front of it.
    `keys` and `origins` are the hash and the first unit by number; `members[bounds[i]:bounds[i + 1]]` are the numbers
    of row `i`, rarest first.
    """

    slots: "NDArray[np.int32]"
    bloom: "NDArray[np.uint64]"
    keys: "NDArray[np.uint64]"
    origins: "NDArray[np.int64]"
    members: "NDArray[np.int32]"
    bounds: "NDArray[np.int64]"


class Postings(NamedTuple):
    """By shingle number: the rows that have it among their rarest, and its rank in each; `lengths` only shrink.

    `bloom` is a filter like that of all shingles: of those that had postings when it was last made.
    """

    begins: "NDArray[np.int64]"
    lengths: "NDArray[np.int32]"
    rows: "NDArray[np.int32]"
    ranks: "NDArray[np.int32]"
    bloom: "NDArray[np.uint64]"


class Progress(NamedTuple):
    """What a scan knows so far.

    By eval row: `slack` (shingles that a better training row may lack), `best` (most shingles found), `trains` (the
    first training row with so many) and `checked` (the last training row compared). By shingle: `seen` (the last
    training row with it) and `places` (its first unit there). `posted`, `held`, `windows` and `values` are room for one
    training row: numbers of the shingles that may be posted and of all, first units and hashes of windows. `counters`
    are posting touches, verifications and successes.
    """

    slack: "NDArray[np.int32]"
    best: "NDArray[np.int32]"
    trains: "NDArray[np.int64]"
    checked: "NDArray[np.int32]"
    seen: "NDArray[np.int32]"
    places: "NDArray[np.int32]"
    posted: "NDArray[np.int32]"
    held: "NDArray[np.int32]"
    windows: "NDArray[np.int32]"
    values: "NDArray[np.uint64]"
    counters: "NDArray[np.int64]"


class Lookup(NamedTuple):
    """Eval rows by the hash of a whole text or of its first units: `slots` hold the first row, `following` the next."""

    slots: "NDArray[np.int32]"
    keys: "NDArray[np.uint64]"
    following: "NDArray[np.int32]"


class Wanted(NamedTuple):
    """Eval rows to be found whole: units, the rows by their units, and by row the training row that has it, or -1."""

    evals: Units
    lookup: Lookup
    trains: "NDArray[np.int64]"


class Found(NamedTuple):
    """Room for pairs: eval row, training row and shingles found; so many are taken as `taken[0]` says."""

    rows: "NDArray[np.int32]"
    trains: "NDArray[np.int64]"
    shares: "NDArray[np.int32]"
    taken: "NDArray[np.int64]"


def table_size(keys: int) -> int:
    """Return a power of two that leaves at least a fifth of an open-addressing table free."""
    return 1 << max(4, (keys + keys // 4).bit_length())
