"""The three methods, over one engine."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ftpipeline.errors import PipelineFileError
from ftpipeline.steps.leakage.engine import Engine
from ftpipeline.steps.leakage.hits import (
    CONTAINMENT,
    EQUAL,
    EXACT,
    METHODS,
    MINHASH,
    NO_ROW,
    REFERENCE,
    RULES,
    Hit,
    needed_for,
)
from ftpipeline.steps.leakage.layout import Texts
from ftpipeline.steps.leakage.plain import PlainEngine
from ftpipeline.steps.leakage.texts import batches

FEW_ROWS = 50_000
"""Training rows up to which loading or compiling the kernels would take longer than doing without them."""


@dataclass(frozen=True)
class Findings:
    """What a check found.

    Attributes:
        hits: one an eval row, sorted by it.
        train_rows: training rows looked at.
        touches: postings met, a measure of the work that does not depend on the machine.
        verifications: pairs compared shingle by shingle.
    """

    hits: tuple[Hit, ...]
    train_rows: int
    touches: int
    verifications: int


def find_best(train: Iterable[Texts], evals: Sequence[str], threshold: float, method: str = EXACT) -> Findings:
    """Return every eval row that is found in a training row, with the best of these, the first one if several are.

    Args:
        train: the training rows, in pieces; each is read once.
        evals: texts of the eval rows.
        threshold: least share of an eval row's shingles, in (0, 1]; for `reference` any finite number.
        method: name of the method.

    Raises:
        PipelineFileError: the threshold or the method cannot be used.
        SourceError: a training row is not UTF-8.
    """
    if method not in METHODS:
        raise PipelineFileError(f"leakage.method is {method!r}; use one of {', '.join(METHODS)}")
    if method == REFERENCE:
        return _as_reference(train, evals, threshold)
    engine = _fed(Engine(evals, needed_for(_share(threshold)), minhash=method == MINHASH), train)
    return _findings(engine, _best(engine))


def find_every(train: Sequence[str], evals: Sequence[str], threshold: float) -> list[Hit]:
    """Return every pair of an eval row and a training row it is found in, sorted; arguments as for `find_best`."""
    needed = needed_for(_share(threshold))
    if len(train) <= FEW_ROWS:
        plain = PlainEngine(evals, needed)
        return _chosen(
            ((row, number), rule, number, score)
            for number, text in enumerate(train)
            for rule, row, score in plain.hits(text)
        )
    engine = _fed(Engine(evals, needed, every=True), batches(train))
    return _chosen(((row, number), rule, number, score) for rule, row, number, score in engine.pairs())


def _fed(engine: Engine, train: Iterable[Texts]) -> Engine:
    for texts in train:
        engine.feed(texts)
    return engine


def _best(engine: Engine) -> list[Hit]:
    return _chosen(((row, 0), rule, number, score) for rule, row, number, score in engine.pairs())


def _chosen(found: Iterable[tuple[tuple[int, int], str, int, float]]) -> list[Hit]:
    """Return the best hit of each key, which begins with the eval row: equality, then score, then the first rule."""
    best: dict[tuple[int, int], tuple[tuple[bool, float, int, int], Hit]] = {}
    for key, rule, number, score in found:
        worth = rule == EQUAL, score, -RULES.index(rule), -number
        if key not in best or worth > best[key][0]:
            best[key] = worth, Hit(key[0], number, score, rule)
    return [hit for _, (_, hit) in sorted(best.items())]


def _as_reference(train: Iterable[Texts], evals: Sequence[str], threshold: float) -> Findings:
    """Return what the specification's loop returns: rows without a shingle count as 0, shares are rounded."""
    if not math.isfinite(threshold):
        raise PipelineFileError(f"leakage.threshold is {threshold}; give a finite number")
    engine = _fed(Engine(evals, needed_for(threshold), shingles_only=True), train)
    found = {hit.eval_row: hit for hit in _best(engine)}
    if threshold <= 0:
        nothing = (Hit(row, NO_ROW, 0.0, CONTAINMENT) for row in range(len(evals)) if row not in found)
        found.update({hit.eval_row: hit for hit in nothing})
    hits = [Hit(hit.eval_row, hit.train_row, round(hit.score, 2), hit.rule) for _, hit in sorted(found.items())]
    return _findings(engine, hits)


def _findings(engine: Engine, hits: Sequence[Hit]) -> Findings:
    touches, verifications, _ = map(int, engine.counters)
    return Findings(tuple(hits), engine.rows, touches, verifications)


def _share(threshold: float) -> float:
    if not 0 < threshold <= 1:
        raise PipelineFileError(f"leakage.threshold is {threshold}; give a share above 0 and up to 1")
    return threshold
