"""`manifest pin`: fill in every hash that this home can still recover, and list those it cannot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ftpipeline.cycle.code_identity import code_identity
from ftpipeline.errors import ManifestError
from ftpipeline.manifest import Manifest, parse
from ftpipeline.records import LineageRecord
from ftpipeline.schema import ROLES, load_yaml
from ftpipeline.store.opened import Store


@dataclass(frozen=True)
class Pinned:
    """A manifest with what could be recovered.

    Attributes:
        document: the manifest's mapping, filled in.
        filled: fields that were recovered.
        unrecoverable: fields that are still open, each with the reason.
    """

    document: dict[str, Any]
    filled: tuple[str, ...]
    unrecoverable: Mapping[str, str]

    def manifest(self, where: str) -> Manifest:
        """Return the manifest, validated.

        Raises:
            ManifestError: a field is still open, or something else is wrong with it.
        """
        return parse(self.document, where)


def pin(path: Path, store: Store) -> Pinned:
    """Recover the hashes of a manifest file from a home.

    Raises:
        ManifestError: the file is no manifest mapping.
    """
    document = load_yaml(path, ManifestError)
    base = _section(document, "base_model")
    sets = _section(document, "eval_sets")
    code = _section(document, "code")
    attempts: dict[str, tuple[dict[str, Any], str, Callable[[], Any]]] = {
        "base_model.tree_sha256": (base, "tree_sha256", lambda: _base_record(store, base).output),
        "tokenizer_sha256": (document, "tokenizer_sha256", lambda: _base_record(store, base).facts["tokenizer_sha256"]),
        "code.git_commit": (code, "git_commit", lambda: code_identity(path.resolve().parent).git_commit),
    }
    for role in ROLES:
        if "@" not in str(sets.get(role, "@")):
            attempts[f"eval_sets.{role}"] = (sets, role, partial(_eval_set, store, str(sets[role])))
    filled, open_fields = [], {}
    for field, (section, key, recover) in attempts.items():
        if section.get(key) is not None and not field.startswith("eval_sets."):
            continue
        try:
            section[key] = recover()
            filled.append(field)
        except ManifestError as error:
            open_fields[field] = str(error)
    if not document.get("labels"):
        open_fields["labels"] = "the label list is recorded with the pipeline; copy it from there"
    return Pinned(document, tuple(filled), open_fields)


def _section(document: dict[str, Any], name: str) -> dict[str, Any]:
    section = document.setdefault(name, {})
    if not isinstance(section, dict):
        raise ManifestError(f"{name} is no mapping; write it as 'key: value' lines")
    return section


def _base_record(store: Store, base: Mapping[str, Any]) -> LineageRecord:
    """The put that froze the base model of the same repository and revision."""
    for record in store.results.of_step("base_model"):
        params = record.params["plain"]
        if base.get("revision") in (params["revision"], record.output):
            return record
    raise ManifestError(f"no base model at revision {base.get('revision')} was frozen in {store.home.root}")


def _eval_set(store: Store, reference: str) -> str:
    name, _, version = reference.removeprefix("evalset://").rpartition("/")
    found = store.eval_sets.find(name, version)
    if found is None:
        raise ManifestError(f"eval set {name}/{version} was never frozen in {store.home.root}")
    return f"evalset://{name}/{version}@{found}"
