"""Which stored files hold rows of an erased key, and a snapshot without them."""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftpipeline.digest import Digest
from ftpipeline.steps.erased_keys import ErasedKeys
from ftpipeline.steps.rows import Reject, SnapshotRow
from ftpipeline.steps.snapshot import REJECTS
from ftpipeline.steps.tables import RECORD, ROWS, read_record, read_rows, write_record, write_rows

if TYPE_CHECKING:
    import pyarrow

_FREE_TEXT = ("text", "excerpt")  # what a person wrote is no reference to a row


@dataclass(frozen=True)
class Redacted:
    """What was taken out of a snapshot.

    Attributes:
        ids: of the rows.
        changed: files that held them.
        facts: counts of what is left.
    """

    ids: frozenset[str]
    changed: list[str]
    facts: dict[str, Any]


def redact(folder: Path, of: Digest, keys: ErasedKeys) -> Redacted:
    """Take the rows of the keys out of a snapshot's files, which are written anew; without such rows none is.

    Rejected records that could not be read belong to nobody, so the excerpts of all of them go too.

    Args:
        folder: of the snapshot's files; those that were erased before are not there.
        of: the snapshot's digest, for the record.
        keys: whose rows go.
    """
    if not (folder / ROWS).exists() or not (folder / REJECTS).exists():
        return Redacted(frozenset(), [], {})
    rows, rejects = read_rows(folder / ROWS, SnapshotRow), read_rows(folder / REJECTS, Reject)
    left = [row for row in rows if not keys.covers(row.id, row.groups)]
    kept = [reject for reject in rejects if not keys.covers(reject.id, reject.groups)]
    gone = len(rows) - len(left) + len(rejects) - len(kept)
    if not gone:
        return Redacted(frozenset(), [], {})
    kept = [replace(reject, excerpt="") if not reject.id and not reject.groups else reject for reject in kept]
    kept = [Reject("", "erased", 0, None, None, None, "", ())] * gone + kept
    write_rows(folder / ROWS, left, SnapshotRow)
    write_rows(folder / REJECTS, kept, Reject)
    record = _record(read_record(folder / RECORD), of, left, kept)
    write_record(folder / RECORD, record)
    ids = {row.id for row in rows} - {row.id for row in left}
    ids |= {reject.id for reject in rejects if keys.covers(reject.id, reject.groups)}
    return Redacted(frozenset(ids), _changed(rows, left, rejects, kept), _facts(record, left))


def _changed(rows: Sequence[Any], left: Sequence[Any], rejects: Sequence[Any], kept: Sequence[Any]) -> list[str]:
    return [name for name, old, new in ((ROWS, rows, left), (REJECTS, rejects, kept)) if list(old) != list(new)]


def _record(record: dict[str, Any], of: Digest, left: Sequence[SnapshotRow], kept: Sequence[Reject]) -> dict[str, Any]:
    counts = {**record["counts"], "accepted": len(left), "rejected": len(kept)}
    return {**record, "counts": counts, "rejects": _reasons(kept), "redacted_from": of}


def _reasons(rejects: Sequence[Reject]) -> dict[str, int]:
    return dict(sorted(Counter(reject.reason for reject in rejects).items()))


def _facts(record: dict[str, Any], left: Sequence[SnapshotRow]) -> dict[str, Any]:
    """Return the facts of a snapshot that the missing rows change."""
    sources = Counter(row.label_source or "(not stated)" for row in left)
    return {
        **record["counts"],
        "rejects": record["rejects"],
        "labels": dict(Counter(row.label for row in left).most_common(100)),
        "label_sources": dict(sources.most_common()),
    }


def holds(data: bytes, ids: Set[str]) -> bool:
    """Tell whether a Parquet file refers to one of the rows in any column of ids, or of lists of ids."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    wanted = pa.array(sorted(ids), pa.string())
    table = parquet.read_table(pa.BufferReader(data))
    columns = [_texts(table[name]) for name in table.column_names if name not in _FREE_TEXT]
    return any(compute.any(compute.is_in(column, value_set=wanted)).as_py() for column in columns if column is not None)


def _texts(column: "pyarrow.ChunkedArray") -> "pyarrow.Array | None":
    import pyarrow as pa
    from pyarrow import compute

    values = compute.list_flatten(column) if pa.types.is_list(column.type) else column
    return values if pa.types.is_string(values.type) else None
