"""Synthetic tickets for benchmarks: mean 63 words, a third of them written from templates, as support mail is.

Kinds: `n` shares nothing but templates; in `b` 30 % of the rows end with one signature of 24 words; `canned` is made of
sentences from a pool of 3,000 and one of 2,000 signatures; `family` are edits of 500 mails; `typographic` is `b` with
40 % of the rows in typographic quotes, umlauts and emoji. One eval row in fifty is an edited copy of a training row.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

ROW_GROUP = 65_536
"""Rows of a Parquet row group; the generator holds one at a time."""

_VOCABULARY, _TEMPLATES, _SENTENCES, _SIGNATURES, _MAILS = 20_000, 400, 3_000, 2_000, 500
_SIGNATURE_WORDS = 24
_COPY_EVERY = 50
_SYLLABLES = [
    onset + vowel
    for onset in ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "tr", "pl", "ch"]
    for vowel in "aeiou"
]
_TYPOGRAPHY = str.maketrans({"'": "\u2019", "a": "\u00e4", "o": "\u00f6", "u": "\u00fc"})
_EMOJI = "\U0001f44d \U0001f64f \U0001f600"


def write_tickets(folder: Path, kind: str, train_rows: int, eval_rows: int, seed: int = 0) -> tuple[Path, Path]:
    """Write `train.parquet` and `eval.parquet`, each with columns `ticket_id` and `text`; return their paths."""
    writer = _Writer(kind, seed)
    train, evals = folder / "train.parquet", folder / "eval.parquet"
    copies = max(1, eval_rows // _COPY_EVERY)
    originals: list[str] = []
    with parquet.ParquetWriter(train, _SCHEMA, compression="zstd") as file:
        for first in range(0, train_rows, ROW_GROUP):
            texts = [writer.ticket() for _ in range(min(ROW_GROUP, train_rows - first))]
            originals += texts[: copies - len(originals)]
            file.write_table(_table(first, texts))
    texts = [writer.ticket() for _ in range(eval_rows)]
    texts[::_COPY_EVERY] = [writer.edited(text, 2) for text in (originals * _COPY_EVERY)[: len(texts[::_COPY_EVERY])]]
    with parquet.ParquetWriter(evals, _SCHEMA, compression="zstd") as file:
        file.write_table(_table(0, texts))
    return train, evals


_SCHEMA = pa.schema([("ticket_id", pa.string()), ("text", pa.string())])


def _table(first: int, texts: list[str]) -> pa.Table:
    ids = [f"T{first + row:08}" for row in range(len(texts))]
    return pa.Table.from_arrays([pa.array(ids), pa.array(texts)], schema=_SCHEMA)


class _Writer:
    def __init__(self, kind: str, seed: int) -> None:
        self._random = np.random.default_rng([seed, list(KINDS).index(kind)])
        self._vocabulary = np.array([self._word() for _ in range(_VOCABULARY)], dtype=object)
        weights = 1 / np.arange(20, _VOCABULARY + 20)
        self._shares = np.cumsum(weights / weights.sum())
        self._supply = self._common_words()
        self._signature = self._prose(_SIGNATURE_WORDS)
        self._templates = [self._prose(self._between(40, 66)).split() for _ in range(_TEMPLATES)]
        self._sentences = [self._prose(self._between(7, 14)) for _ in range(_SENTENCES)]
        self._signatures = [self._prose(_SIGNATURE_WORDS) for _ in range(_SIGNATURES)]
        self._mails = [self._prose(self._between(45, 82)) for _ in range(_MAILS)]
        self._make = KINDS[kind]

    def ticket(self) -> str:
        """Return a new ticket."""
        return self._make(self)

    def edited(self, text: str, edits: int) -> str:
        """Return a text with so many words replaced."""
        words = text.split()
        for _ in range(edits):
            words[self._between(0, len(words))] = self._prose(1)
        return " ".join(words)

    def plain(self) -> str:
        """Return a text of its own, or, in 35 % of the cases, a greeting and a template with two blanks filled in."""
        if self._random.random() >= 0.35:
            return self._prose(self._between(24, 90))
        template = self._templates[self._between(0, _TEMPLATES)]
        blanks = self._prose(2).split()
        return " ".join(
            [self._prose(self._between(1, 6)), *template[:9], blanks[0], *template[9:-9], blanks[1], *template[-9:]]
        )

    def signed(self) -> str:
        """Return a plain text, in 30 % of the cases with the common signature."""
        text = self.plain()
        return f"{text}\n-- \n{self._signature}" if self._random.random() < 0.3 else text

    def canned(self) -> str:
        """Return four canned sentences and a signature."""
        chosen = self._random.integers(0, _SENTENCES, 4)
        sentences = ". ".join(self._sentences[sentence] for sentence in chosen)
        return f"{sentences}.\n{self._signatures[self._between(0, _SIGNATURES)]}"

    def family(self) -> str:
        """Return one of the mails with up to eleven words changed."""
        return self.edited(self._mails[self._between(0, _MAILS)], self._between(1, 12))

    def typographic(self) -> str:
        """Return a signed text, in 40 % of the cases with typographic quotes, umlauts and emoji."""
        text = self.signed()
        if self._random.random() >= 0.4:
            return text
        words = text.split(" ")
        for place in range(self._between(0, 5), len(words), 6):
            words[place] = f"\u201e{words[place].translate(_TYPOGRAPHY)}\u201c"
        return " ".join([*words, "Gr\u00fc\u00dfe", _EMOJI])

    def _between(self, first: int, end: int) -> int:
        return int(self._random.random() * (end - first)) + first

    def _prose(self, words: int) -> str:
        return " ".join(islice(self._supply, words))

    def _common_words(self) -> Iterator[str]:
        """Yield words for ever, the first of the vocabulary most often."""
        while True:
            yield from self._vocabulary[self._shares.searchsorted(self._random.random(4096))]

    def _word(self) -> str:
        chosen = self._random.integers(0, len(_SYLLABLES), self._between(1, 5))
        return "".join(_SYLLABLES[syllable] for syllable in chosen)


KINDS: dict[str, Callable[[_Writer], str]] = {
    "n": _Writer.plain,
    "b": _Writer.signed,
    "canned": _Writer.canned,
    "family": _Writer.family,
    "typographic": _Writer.typographic,
}
"""Kind of ticket to what writes one."""
