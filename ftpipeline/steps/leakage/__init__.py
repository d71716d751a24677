r"""Finds eval rows in training rows: the eval side is indexed, the training side streams by.

Rules, each named in its hits. *containment*: the share of the eval row's eight-token shingles (`\w+` of the lower-cased
text) that stand in one training row reaches the threshold. *equal*: both texts have the same words (`\w+` after NFKC
and case folding). *short*: an eval row of five to seven tokens stands whole in the training row; a shorter one can only
be equal, because a few words in common give nothing away. *characters*: the share of eight-character shingles, for eval
rows mostly in scripts that set no blanks between words.

Methods. `exact` applies all rules and misses nothing. `reference` returns what the specification's loop returns, with
its blind spots. `minhash` is `exact` with candidates for *containment* by MinHash. Whatever is reported was confirmed
on the text: hashes only say where to look. `check` holds the functions.
"""

from ftpipeline.steps.leakage.hits import (
    CHARACTERS,
    CONTAINMENT,
    EQUAL,
    EXACT,
    METHOD,
    METHODS,
    MINHASH,
    NO_ROW,
    REFERENCE,
    RULES,
    SHINGLE,
    SHORT,
    SHORTEST,
    Hit,
)

__all__ = [
    "CHARACTERS",
    "CONTAINMENT",
    "EQUAL",
    "EXACT",
    "METHOD",
    "METHODS",
    "MINHASH",
    "NO_ROW",
    "REFERENCE",
    "RULES",
    "SHINGLE",
    "SHORT",
    "SHORTEST",
    "Hit",
]
