"""The code fingerprint: one digest over everything in the project that can change a step's result (contract C4).

Making one means following the whole closure, so it is kept, in the process and on disk, for as long as its trace holds.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ftpipeline.engine.fingerprint.compute import CodeFingerprint, compute
from ftpipeline.engine.fingerprint.question import Identity, Question, search_path
from ftpipeline.engine.fingerprint.roots import roots_of
from ftpipeline.engine.fingerprint.shelf import Shelf
from ftpipeline.engine.fingerprint.trace import Trace

_KIND = "code"

_answers: dict[Identity, tuple[Question, Trace, CodeFingerprint]] = {}


def code_fingerprint(
    roots: Sequence[Callable[..., object] | type | str],
    project_roots: Sequence[Path] | None = None,
    *,
    cache: Path | None = None,
) -> CodeFingerprint:
    """Return the fingerprint of everything that `roots` can run.

    Args:
        roots: step functions, classes (all their methods), and dotted names of modules that are read without being
            imported, such as a worker's.
        project_roots: folders whose code is first-party. By default all code counts as first-party that is neither of
            the standard library nor installed, and the top-level packages of the roots wherever they stand.
        cache: folder in which fingerprints and facts of files are kept between processes.

    Raises:
        StepDefinitionError: a root has no source that can be found.
        StoreError: the cache folder cannot be written.
    """
    question = Question(roots_of(roots), project_roots, search_path())
    shelf = Shelf(cache, _KIND)
    answer = _answers.get(question.identity) or _load(shelf, question)
    if answer is None or not answer[1].holds(question):
        with _collector_paused():
            answer = (question, *compute(question, cache))
        shelf.save(question.key, {"trace": answer[1].to_row(), "fingerprint": answer[2].to_row()})
        shelf.prune()
    _answers[question.identity] = answer  # keeps the roots alive: they are told apart by identity
    return answer[2]


def _load(shelf: Shelf, question: Question) -> tuple[Question, Trace, CodeFingerprint] | None:
    row = shelf.load(question.key)
    return row and (question, Trace(**row["trace"]), CodeFingerprint.from_row(row["fingerprint"]))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Collect no garbage meanwhile: syntax trees are many objects and no cycles, and it is a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
