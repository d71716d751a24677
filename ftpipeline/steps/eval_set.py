"""Freezes a versioned eval set: the questions as they stand in its file, and the answers that are expected.

The output is `rows.parquet` (EvalRow, in file order) and `eval_set.json`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ftpipeline.digest import of_bytes
from ftpipeline.errors import EvalSetError
from ftpipeline.pipeline import ABSTAIN
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.steps.eval_files import Record, read_records
from ftpipeline.steps.rows import EvalRow
from ftpipeline.steps.sources import FileSource
from ftpipeline.steps.tables import ROWS, write_record, write_rows

EVAL_SET_RECORD = "eval_set.json"
"""File that says which eval set the rows are."""


@step("eval_set", code_version="1", kind=StepKind.SOURCE, distributions=["pyarrow"])
def eval_set(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path, *, file: FileSource) -> Facts:
    """Read and check an eval set.

    Args:
        inputs: none.
        params: `name`, `version`, `format` (csv, jsonl or parquet), `columns` (names of `id`, `text` and `expected`),
            `content` (digest of the file) and `labels`, the answers there can be beside `abstain`.
        out: the output tree.
        file: where the file lies.

    Raises:
        EvalSetError: the content is another than the declared one, or not a usable eval set.
        SourceUnavailableError: the file cannot be read.
    """
    data = file.read()
    title = f"eval set {params['name']}/{params['version']}"
    if (content := of_bytes(data)) != params["content"]:
        raise EvalSetError(f"{title}: the file's content is {content}, not {params['content']}; give it a new version")
    try:
        rows = list(_rows(data, params))
    except EvalSetError as error:
        raise EvalSetError(f"{title}: {error}") from error
    if not rows:
        raise EvalSetError(f"{title}: the file holds no row; give it at least one")
    record = {
        "name": params["name"],
        "version": params["version"],
        "rows": len(rows),
        "expected": dict(Counter(row.expected for row in rows).most_common()),
    }
    write_rows(out / ROWS, rows, EvalRow)
    write_record(out / EVAL_SET_RECORD, record)
    return {**record, "content": content}


def _rows(data: bytes, params: Mapping[str, Any]) -> Iterator[EvalRow]:
    answers = {*params["labels"], ABSTAIN}
    lines: dict[str, int] = {}
    for record in read_records(data, params["format"]):
        row = EvalRow(**{part: _value(record, params["columns"][part]) for part in ("id", "text", "expected")})
        if row.id in lines:
            raise EvalSetError(f"line {record.line} repeats id {row.id!r} of line {lines[row.id]}; ids are unique")
        if row.expected not in answers:
            raise EvalSetError(
                f"line {record.line} expects {row.expected!r}, which is no label; use a label or {ABSTAIN}"
            )
        lines[row.id] = record.line
        yield row


def _value(record: Record, column: str) -> str:
    if column not in record.values:
        raise EvalSetError(f"line {record.line} has no column {column!r}; it has {', '.join(map(str, record.values))}")
    value = record.values[column]
    if not isinstance(value, str):
        raise EvalSetError(f"line {record.line} holds no text in column {column!r}; write ids and texts as text")
    if not value.strip() or "\0" in value:
        raise EvalSetError(
            f"line {record.line} has an empty value or a NUL in column {column!r}; fill it in or remove it"
        )
    return value
