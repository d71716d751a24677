"""The distributions that named ones require, transitively, with versions and digests of what was installed."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ftpipeline import digest
from ftpipeline.engine.fingerprint.disk import Disk
from ftpipeline.engine.fingerprint.installed import Installation, normalised
from ftpipeline.engine.fingerprint.question import search_path
from ftpipeline.engine.fingerprint.shelf import Shelf
from ftpipeline.errors import MissingDependencyError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_KIND = "distributions"
_ABSENT = "absent"
_CONSULTED = ("RECORD", "METADATA", "PKG-INFO", "direct_url.json")
_OWN_NOTES = ("/INSTALLER,", "/REQUESTED,", "/RECORD,", "/direct_url.json,", "/uv_cache.json,")


class Installed(NamedTuple):
    """What is installed of one distribution.

    Attributes:
        version: its version; `absent` for an optional one that is not installed.
        files: digest of its list of files with their hashes.
    """

    version: str
    files: str


_answers: dict[str, Mapping[str, Any]] = {}


def reachable(named: Iterable[str], folder: Path | None = None) -> dict[str, Installed]:
    """Return the distributions named and all that they require, by name.

    Args:
        named: names, with extras where they are needed. Editable installations are left out.
        folder: cache folder in which answers are kept between processes.

    Raises:
        MissingDependencyError: a named distribution is not installed.
        StoreError: the cache folder cannot be written.
    """
    system, _, release, version, machine = os.uname()  # what requirements may depend on, beside the interpreter
    path, names = search_path(), sorted(named)
    key = digest.of_json([names, list(path), [system, release, version, machine]]).removeprefix("sha256:")
    shelf = Shelf(folder, _KIND)
    answer = _answers.get(key) or shelf.load(key)
    installation = Installation(path)
    if answer is None or not _holds(answer, installation):
        metadata.MetadataPathFinder().invalidate_caches()
        disk = Disk()
        found = _follow(names, disk)
        answer = {"installed": list(installation.metadata), "files": disk.files, "found": found}
        shelf.save(key, answer)
    _answers[key] = answer
    return {name: Installed(*content) for name, content in answer["found"].items()}


def _holds(answer: Mapping[str, Any], installation: Installation) -> bool:
    disk = Disk()
    same_files = all(disk.digest(path) == content for path, content in answer["files"].items())
    return same_files and answer["installed"] == list(installation.metadata)


def _follow(named: Iterable[str], disk: Disk) -> dict[str, Installed]:
    found: dict[str, Installed] = {}
    seen: set[tuple[str, str]] = set()
    pending = [(name, True) for name in named]
    while pending:
        text, required = pending.pop()
        requirement = _requirement(text)
        name = normalised(requirement.name)
        distribution = _distribution(name)
        if distribution is None:
            _note_absent(name, required, found)
            continue
        _consult(distribution, disk)
        if _is_editable(distribution):
            continue
        if name not in found:
            found[name] = Installed(distribution.version, _digest_of_files(distribution))
        for extra in sorted({"", *requirement.extras}):
            if (name, extra) not in seen:
                seen.add((name, extra))
                pending += ((needed, False) for needed in _requirements(distribution, extra))
    return dict(sorted(found.items()))


def _note_absent(name: str, required: bool, found: dict[str, Installed]) -> None:
    if required:
        raise MissingDependencyError(f"distribution {name!r} is not installed; install it, or take it off the step")
    found[name] = Installed(_ABSENT, _ABSENT)  # installing it later may change the result


@cache
def _requirement(text: str) -> "Requirement":
    from packaging.requirements import Requirement

    return Requirement(text)


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _consult(distribution: metadata.Distribution, disk: Disk) -> None:
    """Note the files that the answer is made from, so that it holds no longer than they do."""
    for name in _CONSULTED:
        disk.digest(str(_metadata_folder(distribution) / name))


def _requirements(distribution: metadata.Distribution, extra: str) -> tuple[str, ...]:
    """Return what the distribution requires here for one extra; the empty one is none."""
    parsed = map(_requirement, distribution.requires or ())
    held = [it for it in parsed if it.marker is None or it.marker.evaluate({"extra": extra})]
    return tuple(f"{it.name}[{','.join(sorted(it.extras))}]" for it in held)


def _is_editable(distribution: metadata.Distribution) -> bool:
    text = distribution.read_text("direct_url.json")
    return bool(text and json.loads(text).get("dir_info", {}).get("editable"))


def _metadata_folder(distribution: metadata.Distribution) -> Path:
    folder = Path(str(getattr(distribution, "_path", ""))).name
    return Path(str(distribution.locate_file(""))) / folder


def _digest_of_files(distribution: metadata.Distribution) -> str:
    """Return a digest of the files' hashes, without what differs between installations of the same wheel.

    Scripts (outside the package folder) hold the path of the interpreter; the installer's own notes say how, not what.
    """
    record = _metadata_folder(distribution) / "RECORD"
    if not record.is_file():
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        return f"without RECORD {digest.of_bytes(text.encode())}"
    lines = record.read_text("utf-8").splitlines()
    kept = [line for line in lines if "sha256=" in line and not line.startswith(("..", "/"))]
    kept = sorted(line for line in kept if not any(note in line for note in _OWN_NOTES))
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()
