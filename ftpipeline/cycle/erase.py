"""Erasure: removes the rows of one key from every snapshot and from everything derived that holds text.

Stored bytes cannot change, so a file that holds such rows goes as a whole: its tombstone says why it is not there, the
trees, records and digests around it stay, and with them the lineage. A snapshot is put again without the rows and takes
the old one's place, so that its week can be run again without asking the source. What was trained on the rows is not
touched but named: whether a model may stay is for a person to say.

Each part can be done twice: an erasure that died is finished by running it again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ftpipeline.cycle.redaction import holds, redact
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError
from ftpipeline.records import LineageRecord
from ftpipeline.registry.registry import Registry
from ftpipeline.steps.erased_keys import ID, ErasedKeys, key_digest
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.erasures import ErasedKeyList
from ftpipeline.store.opened import Store
from ftpipeline.store.tombstones import Tombstone, retire
from ftpipeline.store.trees import TreeEntry
from ftpipeline.store.upkeep import LocalUpkeep

MODEL_STEPS = ("train", "export")
"""Steps whose outputs are models."""


@dataclass(frozen=True)
class Model:
    """A model that was made from erased rows.

    Attributes:
        artifact: digest of the adapter or the export.
        step: what made it.
        registered: `{"name", "stage", "week"}` for every entry of the artifact.
    """

    artifact: Digest
    step: str
    registered: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class Erasure:
    """What was erased.

    Attributes:
        rows: rows in snapshots, a row of several snapshots counted in each.
        snapshots: digest of a snapshot to that of the one in its place; None where no row was left.
        trees: everything that lost a file, snapshots among them.
        blobs: files whose bytes are gone.
        freed: their bytes.
        models: what was made from the rows.
    """

    rows: int
    snapshots: Mapping[Digest, Digest | None]
    trees: tuple[Digest, ...]
    blobs: tuple[Digest, ...]
    freed: int
    models: tuple[Model, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the erasure as one JSON document."""
        return {
            "rows": self.rows,
            "snapshots": [{"erased": old, "replaced_by": new} for old, new in self.snapshots.items()],
            "trees": list(self.trees),
            "blobs": list(self.blobs),
            "freed": self.freed,
            "models": [
                {"artifact": model.artifact, "step": model.step, "registered": list(model.registered)}
                for model in self.models
            ],
        }


def erase(store: Store, key: str, reason: str) -> Erasure:
    """Erase the rows of a key, and keep them out of every later snapshot.

    Args:
        store: the open store.
        key: `<column>=<value>` of a group column, or an id.
        reason: why, in a person's words; kept for ever, so it should not name the person.

    Raises:
        InputError: the key or the reason is blank.
        CorruptArtifactError: a tree that may hold such rows is altered or missing.
        StoreError: something could not be removed.
    """
    column, _, value = key.rpartition("=")
    if not value.strip() or not reason.strip():
        raise InputError("erase needs a key such as customer_id=C7, or an id, and a reason; give both")
    named = key if column else f"{ID}={key}"
    keys = ErasedKeys([key_digest(named)])
    ErasedKeyList(store.database).add(Digest(key_digest(named)), reason)
    return _Eraser(store, keys, reason).run()


class _Eraser:
    """One erasure under way."""

    def __init__(self, store: Store, keys: ErasedKeys, reason: str) -> None:
        self._store = store
        self._keys = keys
        self._reason = reason
        self._trees: dict[Digest, None] = {}
        self._blobs: dict[Digest, int] = {}

    def run(self) -> Erasure:
        snapshots: dict[Digest, Digest | None] = {}
        models: dict[Digest, Model] = {}
        rows = 0
        for old in dict.fromkeys(record.output for record in self._store.results.of_step("snapshot")):
            if self._store.blobs.size(old) is None:
                continue  # collected, with its text
            with TemporaryDirectory(dir=self._store.home.scratch) as folder:
                erased = redact(self._files(old, Path(folder)), old, self._keys)
                if not erased.ids:
                    continue
                rows += len(erased.ids)
                snapshots[old] = self._replace(old, Path(folder), erased.facts)
            for output in self._made_from(old, erased.ids):
                models.update((model.artifact, model) for model in self._model(output))
            self._note(old, erased.changed)  # last: it is where an erasure that died starts again
        self._forget()
        seen = tuple(models.values())
        return Erasure(rows, snapshots, tuple(self._trees), tuple(self._blobs), sum(self._blobs.values()), seen)

    def _files(self, tree: Digest, folder: Path) -> Path:
        """Write the files of a tree that are still there into a folder."""
        for entry in self._entries(tree):
            target = folder / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self._store.blobs.read_bytes(entry.sha256))
        return folder

    def _entries(self, tree: Digest) -> list[TreeEntry]:
        """Return the files of a tree whose bytes are there."""
        if self._store.blobs.size(tree) is None:
            return []
        return [entry for entry in self._store.trees.entries(tree) if self._store.blobs.size(entry.sha256) is not None]

    def _replace(self, old: Digest, folder: Path, facts: Mapping[str, Any]) -> Digest | None:
        """Let the redacted snapshot stand for the keys of the old one, and the old one for none."""
        standing = [record for record in self._store.results.made(old) if self._stands(record)]
        with self._store.database.write() as connection:
            retire(connection, [old], Tombstone.ERASED)
        if not facts["accepted"]:
            return None
        new = self._store.trees.put(folder)
        for record in standing:
            self._store.results.record(replace(record, output=new, facts={**record.facts, **facts}))
        self._point(old, new)
        return new

    def _stands(self, record: LineageRecord) -> bool:
        found = self._store.results.find(record.key)
        return found is not None and found.output == record.output

    def _point(self, old: Digest, new: Digest) -> None:
        """Lead the partitions that end at the old snapshot to the new one."""
        for pointer in self._store.pointers.ending_at(old):
            self._store.pointers.put(pointer.asset, pointer.partition, pointer.run_id, pointer.attempt, new)

    def _made_from(self, snapshot: Digest, ids: frozenset[str]) -> list[Digest]:
        """Return what was made from the rows of these ids, at any distance, and note the files that hold them."""
        found: dict[Digest, None] = {}
        waiting = [snapshot]
        while waiting:
            for output in self._store.results.dependants(waiting.pop()):
                if output not in found and self._took_over(output, ids):
                    found[output] = None
                    waiting.append(output)
        return list(found)

    def _took_over(self, tree: Digest, ids: frozenset[str]) -> bool:
        """Tell whether a derived tree may hold, or come from, rows of these ids: its tables say so, where it has any.

        A tree without tables, such as a model, and one that lost a file before, cannot speak for itself.
        """
        present = self._entries(tree)
        tables = [entry for entry in present if entry.path.endswith(".parquet")]
        held = [entry.path for entry in tables if holds(self._store.blobs.read_bytes(entry.sha256), ids)]
        self._note(tree, held)
        is_whole = bool(present) and len(present) == len(self._store.trees.entries(tree))
        return bool(held) or not tables or not is_whole

    def _note(self, tree: Digest, files: list[str]) -> None:
        for entry in self._store.trees.entries(tree) if files else ():
            if entry.path in files:
                self._trees[tree] = None
                self._blobs[entry.sha256] = entry.size

    def _model(self, output: Digest) -> Iterator[Model]:
        for record in self._store.results.made(output)[:1]:
            if record.step in MODEL_STEPS:
                entries = Registry(self._store.database, self._store.trees).entries()
                registered = [
                    {"name": entry.name, "stage": str(entry.stage), "week": entry.week}
                    for entry in entries
                    if entry.artifact == output
                ]
                yield Model(output, record.step, tuple(registered))

    def _forget(self) -> None:
        """Set the results aside, write every tombstone, and only then let the bytes go."""
        with self._store.database.write() as connection:
            retire(connection, list(self._trees), Tombstone.ERASED)
        for blob in self._blobs:
            self._store.erased.add(blob, self._reason)
        late = datetime.now(UTC) + timedelta(days=1)  # whenever they were put
        for blob in self._blobs:
            self._store.upkeep.remove(blob, late)
            if self._store.home.remote_url is not None:
                LocalUpkeep(LocalBlobs(self._store.home.store_root)).remove(blob, late)
