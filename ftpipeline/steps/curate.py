"""Step 2: turns a snapshot into texts to learn from, in named stages that say what they removed.

The output is `rows.parquet` (CuratedRow), `variants.parquet` (Variant: the other wordings that a row stands for, which
the leakage check must see) and `record.json`: the snapshot's record, the version of this step, and the stages.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ftpipeline.errors import EmptyResultError
from ftpipeline.records import Facts, step
from ftpipeline.steps.duplicates import near_duplicates
from ftpipeline.steps.labels import LabelList, shown
from ftpipeline.steps.ports import Progress, silent
from ftpipeline.steps.replies import ALL_LANGUAGES
from ftpipeline.steps.rows import CuratedRow, SnapshotRow, Variant
from ftpipeline.steps.tables import RECORD, ROWS, read_record, read_rows, write_record, write_rows
from ftpipeline.steps.text import clean

VARIANTS = "variants.parquet"
"""File of the wordings that curated rows stand for beside their own."""

CODE_VERSION = "2"

_CORRECTED = "human_corrected"
_SHOWN_SPELLINGS = 50  # of rejected labels, in the facts; the record has all
_Cluster = list[SnapshotRow]  # rows of one meaning, sorted by id
_Item = TypeVar("_Item")


@step("curate", code_version=CODE_VERSION, distributions=["pyarrow"])
def curate(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path, *, progress: Progress = silent) -> Facts:
    """Curate a snapshot.

    Args:
        inputs: `snapshot`.
        params: `labels`, the closed list; `human_sources`, the label sources that a person stands behind, or None to
            take every row; `near_duplicates`, least Jaccard similarity; `normalise_labels`, how spellings are compared
            (see NORMAL_FORMS; "strip" where it is not given); `languages`, whose mail phrases are cut (where it is not
            given, all that are known).
        out: the output tree.
        progress: told about texts cleaned.

    Raises:
        EmptyResultError: no row is left.
        LabelError: the label list is unusable.
    """
    labels = LabelList(params["labels"], params.get("normalise_labels", "strip"))
    rows = read_rows(inputs["snapshot"] / ROWS, SnapshotRow)
    funnel = _Funnel(len(rows))
    verified, dropped_sources = _human_verified(rows, params["human_sources"])
    funnel.passed("human_verified", verified)
    listed, rejected_labels = _listed(verified, labels)
    funnel.passed("closed_label_list", listed)
    cleaned, cleaning = _cleaned(listed, tuple(params.get("languages", ALL_LANGUAGES)), progress)
    funnel.passed("clean_text", cleaned)
    clusters = funnel.passed("exact_duplicates", _same_text(cleaned))
    clusters = funnel.passed("near_duplicates", _alike(clusters, params["near_duplicates"]))
    settled = funnel.passed("label_conflicts", [cluster for cluster in map(_settled, clusters) if cluster])
    if not settled:
        raise EmptyResultError(f"curation keeps no row of the snapshot ({funnel}); check the labels and their sources")
    curated = [_merged(cluster) for cluster in settled]
    write_rows(out / ROWS, curated, CuratedRow)
    write_rows(out / VARIANTS, [variant for cluster in settled for variant in _variants(cluster)], Variant)
    record: dict[str, Any] = {
        "curation_version": CODE_VERSION,
        "stages": funnel.stages,
        "dropped_label_sources": dict(dropped_sources.most_common()),
        "rejected_labels": dict(rejected_labels.most_common()),
        "cleaning": cleaning,
        "labels": dict(Counter(row.label for row in curated).most_common()),
    }
    write_record(out / RECORD, {"snapshot": read_record(inputs["snapshot"] / RECORD), **record})
    most_rejected = dict(rejected_labels.most_common(_SHOWN_SPELLINGS))
    return {"read": len(rows), "rows": len(curated), **record, "rejected_labels": most_rejected}


class _Funnel:
    """How many rows, later clusters of rows, each stage was given and passed on."""

    def __init__(self, rows: int) -> None:
        self.stages: list[dict[str, Any]] = []
        self._left = rows

    def passed(self, stage: str, items: list[_Item]) -> list[_Item]:
        self.stages.append({"stage": stage, "before": self._left, "after": len(items)})
        self._left = len(items)
        return items

    def __str__(self) -> str:
        return ", ".join(f"{stage['stage']} {stage['before']} -> {stage['after']}" for stage in self.stages)


def _human_verified(rows: list[SnapshotRow], sources: Sequence[str] | None) -> tuple[list[SnapshotRow], Counter[str]]:
    """Keep rows whose label a person stands behind; without declared sources every row counts as such."""
    if sources is None:
        return rows, Counter()
    dropped = Counter(row.label_source or "(not stated)" for row in rows if row.label_source not in sources)
    return [row for row in rows if row.label_source in sources], dropped


def _listed(rows: list[SnapshotRow], labels: LabelList) -> tuple[list[SnapshotRow], Counter[str]]:
    listed = [replace(row, label=label) for row in rows if (label := labels.match(row.label))]
    return listed, Counter(shown(row.label) for row in rows if labels.match(row.label) is None)


def _cleaned(
    rows: list[SnapshotRow], languages: tuple[str, ...], progress: Progress
) -> tuple[list[SnapshotRow], dict[str, int]]:
    """Clean every text; a row of which nothing is left is rejected."""
    kept: list[SnapshotRow] = []
    counts = Counter(markup_removed=0, replies_stripped=0, kept_whole=0, quotes_left=0, rejected_as_empty=0)
    for done, row in enumerate(rows, start=1):
        cleaned = clean(row.text, languages)
        counts.update(cleaned.pii)
        counts["markup_removed"] += cleaned.was_markup
        counts["quotes_left"] += cleaned.quotes_left
        counts["replies_stripped"] += cleaned.stripped
        counts["kept_whole"] += cleaned.kept_whole
        counts["rejected_as_empty"] += not cleaned.text
        if cleaned.text:
            kept.append(replace(row, text=cleaned.text))
        progress(done, len(rows), "cleaning texts")
    return kept, dict(counts)


def _same_text(rows: list[SnapshotRow]) -> list[_Cluster]:
    by_text: dict[str, _Cluster] = {}
    for row in rows:
        by_text.setdefault(row.text, []).append(row)
    return list(by_text.values())


def _alike(clusters: list[_Cluster], threshold: float) -> list[_Cluster]:
    """Join clusters of near duplicates; the rows are sorted by id, so the result does not depend on their order."""
    groups = near_duplicates([cluster[0].text for cluster in clusters], threshold)
    return [sorted((row for index in group for row in clusters[index]), key=lambda row: row.id) for group in groups]


def _settled(cluster: _Cluster) -> _Cluster | None:
    """Give the whole cluster one label.

    Where its rows disagree, the newest correction by a person decides (of equally new ones that of the largest id);
    without one nobody knows the right label, and the cluster is rejected.
    """
    if len({row.label for row in cluster}) == 1:
        return cluster
    corrections = [row for row in cluster if row.label_source == _CORRECTED]
    if not corrections:
        return None
    label = max(corrections, key=lambda row: (row.event_time, row.id)).label
    return [replace(row, label=label) for row in cluster]


def _merged(cluster: _Cluster) -> CuratedRow:
    first = cluster[0]
    return CuratedRow(
        id=first.id,
        text=first.text,
        label=first.label,
        event_time=first.event_time,
        groups=tuple(sorted({key for row in cluster for key in row.groups})),
        members=tuple(row.id for row in cluster),
    )


def _variants(cluster: _Cluster) -> list[Variant]:
    texts = dict.fromkeys(row.text for row in cluster)
    return [Variant(cluster[0].id, text) for text in texts if text != cluster[0].text]
