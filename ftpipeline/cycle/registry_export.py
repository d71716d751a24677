"""Exports what stands under a name and stage as a folder that needs no home: bytes, evidence and a model card.

| file | holds |
|---|---|
| `README.md` | the model card |
| `artifact/` | the served files |
| `manifest.json` | what it was made from |
| `reports/`, `gate/` | evaluations, and what the gate made of them |
| `registry.json` | the entry and every move of its name |
| `lineage.tar`, `lineage.pub.pem` | the bundle that `ftpipeline verify` proves, and the key to prove it with |

The files are copies: whoever edits them touches nothing of the store.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ftpipeline.cycle.bundle import export_bundle
from ftpipeline.digest import Digest, canonical_json, parse_json
from ftpipeline.errors import CorruptArtifactError, StoreError
from ftpipeline.receipts import SigningKey
from ftpipeline.registry.evidence import MANIFEST_FILE, REPORT_FILE, pinned_eval_sets
from ftpipeline.registry.model_card import CardFacts, model_card
from ftpipeline.registry.records import Entry
from ftpipeline.registry.registry import Registry
from ftpipeline.store.opened import Store
from ftpipeline.store.trees import tree_digest

CARD, ARTIFACT, BUNDLE, KEY, REGISTRY = "README.md", "artifact", "lineage.tar", "lineage.pub.pem", "registry.json"


@dataclass(frozen=True)
class ExportedEntry:
    """An exported entry.

    Attributes:
        folder: where it stands.
        entry: what it is.
        bundle: digest of the lineage bundle.
    """

    folder: Path
    entry: Entry
    bundle: Digest


def export_entry(store: Store, name: str, stage: str, target: Path, key: SigningKey) -> ExportedEntry:
    """Write the entry that `name@stage` holds to a folder, whole or not at all.

    Args:
        store: the open store.
        name: registry name.
        stage: a stage that holds one entry.
        target: a folder that does not exist yet, or is empty.
        key: signs the lineage bundle.

    Raises:
        UnknownNameError: the name or stage is unknown, or the stage is empty.
        QuarantinedError: the artifact, or something it was made from, is under quarantine.
        CorruptArtifactError: the artifact, or a record about it, is missing or altered.
        VerdictError: its lineage is broken.
        StoreError: the folder holds something or cannot be written.
    """
    registry = Registry.of_store(store)
    entry = registry.entry_at(name, stage)
    with _written(target) as folder:
        _copy(store, entry.artifact, folder / ARTIFACT)
        _copy(store, entry.report, folder / "reports")
        _copy(store, entry.gate, folder / "gate")
        manifest = store.trees.read(entry.manifest, MANIFEST_FILE)
        (folder / MANIFEST_FILE).write_bytes(manifest)
        history = registry.history(name)
        moves = [asdict(row) for row in history]
        (folder / REGISTRY).write_bytes(canonical_json({"entry": asdict(entry), "history": moves}))
        facts = CardFacts(
            entry,
            history,
            parse_json(manifest),
            pinned_eval_sets(store.trees, entry.manifest),
            parse_json(store.trees.read(entry.report, REPORT_FILE)),
        )
        (folder / CARD).write_text(model_card(facts), "utf-8")
        bundle = export_bundle(store, entry.artifact, folder / BUNDLE, key)
        key.public.write(folder / KEY)
    return ExportedEntry(target, entry, bundle.digest)


@contextmanager
def _written(target: Path) -> Iterator[Path]:
    """Yield a folder that takes the target's name once it is complete."""
    partial = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        partial.mkdir(parents=True)
        yield partial
        os.rename(partial, target)  # replaces an empty folder, and nothing else
    except OSError as error:
        raise StoreError(
            f"export folder {str(target)!r} cannot be written ({error.strerror}); give a new or empty folder"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # already moved away unless something failed


def _copy(store: Store, tree: Digest, target: Path) -> None:
    """Copy a tree out of the store and hash the copy."""
    linked = target.with_name(f"{target.name}.linked")
    store.trees.checkout(tree, linked)
    shutil.copytree(linked, target, copy_function=shutil.copyfile)
    shutil.rmtree(linked)
    if tree_digest(target) != tree:
        raise CorruptArtifactError(tree, "altered while it was copied", remedy="export it again")
