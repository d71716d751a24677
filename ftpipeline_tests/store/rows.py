"""Trees and rows as short as tests want them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.records import LineageRecord
from ftpipeline.store.trees import Trees

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def digest(name: str) -> Digest:
    """Return the digest that stands for `name`."""
    return of_bytes(name.encode())


def lineage(key: Digest, output: Digest, inputs: Mapping[str, Digest] | None = None, **rest: Any) -> LineageRecord:
    """Return the record of a put; `rest` replaces what does not matter."""
    record = LineageRecord(
        step="curate",
        key=key,
        code=digest("code"),
        inputs=inputs or {},
        params={},
        output=output,
        facts={},
        run_id="run",
        isolation="none",
        started=NOON,
        finished=NOON + timedelta(seconds=1),
        cpu_seconds=1.0,
        environment=digest("environment"),
    )
    return replace(record, **rest)


def put_tree(trees: Trees, **files: bytes) -> Digest:
    """Store a tree of these files."""
    with TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).write_bytes(data)
        return trees.put(Path(folder))
