"""Compiles all kernels: run as a program, it leaves their machine code in `$NUMBA_CACHE_DIR`."""

from collections.abc import Sequence

from ftpipeline.steps.leakage.engine import Engine
from ftpipeline.steps.leakage.hits import needed_for
from ftpipeline.steps.leakage.texts import from_strings

# Texts that reach every rule: containment, a short row, characters without blanks, folding, and a row left to Python.
_TEXTS: Sequence[str] = (
    "one two three four five six seven eight nine",
    "one two three four five",
    "\u5929\u6c14" * 6,
    "\u00dfx \u2019",
    "\u03a3\u03a3 e\u0301",
)


def warm() -> None:
    """Run the engine once, as a split does, over a few texts."""
    engine = Engine(_TEXTS, needed_for(0.5), every=True)
    engine.feed(from_strings(_TEXTS))
    list(engine.pairs())


if __name__ == "__main__":
    warm()
