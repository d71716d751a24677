"""Leaks of curated rows into eval sets: which rows, by which rule, with how many source rows behind them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ftpipeline.steps.leakage import EQUAL, RULES
from ftpipeline.steps.leakage.check import find_every
from ftpipeline.steps.ports import Progress
from ftpipeline.steps.rows import CuratedRow, EvalRow, Leak
from ftpipeline.steps.text import clean

TRAIN, VALIDATION = "train", "validation"
"""Names of the splits."""


class LeakFinder:
    """Checks curated rows, in every wording they stand for, against eval sets.

    Attributes:
        threshold: least share of an eval row's shingles, in (0, 1].
    """

    def __init__(self, wordings: Mapping[str, Sequence[str]], threshold: float, progress: Progress) -> None:
        """Keep what all checks share.

        Args:
            wordings: curated row's id to the texts it stands for beside its own.
            threshold: least share of an eval row's shingles.
            progress: told about rows checked.
        """
        self.threshold = threshold
        self._wordings = wordings
        self._progress = progress

    def find(
        self, eval_set: str, evals: Sequence[EvalRow], rows: Sequence[CuratedRow], sides: Mapping[str, str]
    ) -> list[Leak]:
        """Return the leaks of `rows` into one eval set, sorted by eval row and curated row.

        An eval text is looked for as it stands and as curation would have written it: the rows went through curation.
        """
        by_id = {row.id: row for row in rows}
        owners, texts = self._texts(eval_set, rows)
        forms = [row.text for row in evals] + [clean(row.text).text for row in evals]
        best: dict[tuple[int, str], tuple[bool, float, int]] = {}
        for hit in find_every(texts, forms, self.threshold):
            pair = hit.eval_row % len(evals), owners[hit.train_row]
            found = hit.rule == EQUAL, hit.score, -RULES.index(hit.rule)
            best[pair] = max(found, best.get(pair, found))
        return [
            Leak(eval_set, evals[index].id, sides[row], row, score, RULES[-place], by_id[row].members)
            for (index, row), (_, score, place) in sorted(best.items())
        ]

    def _texts(self, eval_set: str, rows: Sequence[CuratedRow]) -> tuple[list[str], list[str]]:
        """Return curated row ids and texts, one of each for every wording."""
        owners: list[str] = []
        texts: list[str] = []
        for done, row in enumerate(rows, start=1):
            wordings = [row.text, *self._wordings.get(row.id, ())]
            owners += [row.id] * len(wordings)
            texts += wordings
            self._progress(done, len(rows), f"checking against {eval_set}")
        return owners, texts


def summary(leaks: Sequence[Leak], rows_checked: int) -> dict[str, Any]:
    """Return what one eval set's leaks come to; a row counts once, under the first of the rules that it breaks."""
    behind = {leak.train_id: len(leak.members) for leak in leaks}
    sides = Counter({leak.train_id: leak.split for leak in leaks}.values())
    first: dict[str, int] = {}
    for leak in leaks:
        place = RULES.index(leak.rule)
        first[leak.train_id] = min(place, first.get(leak.train_id, place))
    rules = Counter(RULES[place] for place in first.values())
    return {
        "rows_checked": rows_checked,
        "leaked_eval_rows": len({leak.eval_row for leak in leaks}),
        "leaked": sides[TRAIN],
        "leaked_from_validation": sides[VALIDATION],
        "leaked_tickets": sum(behind.values()),
        **{f"by_{rule}": rules[rule] for rule in RULES},
    }
