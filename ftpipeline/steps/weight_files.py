"""The weights of a model folder, known by their headers: which tensors there are, and that none is cut off or missing.

A safetensors file is an 8-byte little-endian length, a JSON header of that length, and the bytes of the tensors that
the header lists with their offsets.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftpipeline.errors import ModelFilesError

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"

_LENGTH = struct.Struct("<Q")
_LONGEST_HEADER = 100_000_000
_METADATA = "__metadata__"


@dataclass(frozen=True)
class TensorInfo:
    """What a header says of one tensor.

    Attributes:
        dtype: element type as safetensors names it, such as `F32`.
        shape: its sizes.
    """

    dtype: str
    shape: tuple[int, ...]


def weight_files(folder: Path) -> list[str]:
    """Return the names of a model's weight files: one, or those that the index of a sharded model lists.

    Raises:
        ModelFilesError: one is missing, or the index lists none.
    """
    names = sorted(set(_shards(folder).values())) or [SINGLE]
    for name in names:
        if not (folder / name).is_file():
            raise ModelFilesError(f"base model has no {name}; give a model with all its safetensors weights")
    return names


def model_tensors(folder: Path) -> dict[str, TensorInfo]:
    """Return all tensors of a model by name, over all its weight files; only headers are read.

    Raises:
        ModelFilesError: a file is missing or torn, or a shard does not hold what the index says it does.
    """
    by_file = {name: read_header(folder / name) for name in weight_files(folder)}
    for tensor, name in sorted(_shards(folder).items()):
        if tensor not in by_file[name]:
            raise ModelFilesError(f"{name} of the base model lacks {tensor}, which {INDEX} puts there; fetch it again")
    tensors = {name: info for header in by_file.values() for name, info in header.items()}
    if not tensors:
        raise ModelFilesError("base model has weight files without a weight; give a complete model")
    return tensors


def read_header(path: Path) -> dict[str, TensorInfo]:
    """Return the tensors of one safetensors file.

    Raises:
        ModelFilesError: it is no such file, or it ends before its last tensor.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
            if length > min(size, _LONGEST_HEADER):
                raise ValueError("its header is longer than the file")
            header = {name: tensor for name, tensor in json.loads(file.read(length)).items() if name != _METADATA}
        end = max((int(tensor["data_offsets"][1]) for tensor in header.values()), default=0)
        if size != _LENGTH.size + length + end:
            raise ValueError(f"it has {size} bytes where its header asks for {_LENGTH.size + length + end}")
        return {name: TensorInfo(str(tensor["dtype"]), tuple(tensor["shape"])) for name, tensor in header.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise ModelFilesError(
            f"{path.name} of the base model is torn or not safetensors ({error}); fetch it again"
        ) from error


def read_object(folder: Path, name: str) -> dict[str, Any]:
    """Return the JSON object in a file of a model folder.

    Raises:
        ModelFilesError: the file is missing, or holds something else.
    """
    try:
        document = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFilesError(f"base model has no {name}; give a model in the transformers format") from error
    except (OSError, ValueError) as error:
        raise ModelFilesError(f"{name} of the base model is not JSON ({error}); use a complete model") from error
    if not isinstance(document, dict):
        raise ModelFilesError(f"{name} of the base model holds no JSON object; use a complete model")
    return document


def _shards(folder: Path) -> Mapping[str, str]:
    """Return tensor name to file name, as the index has it; nothing where the model is in one file."""
    if not (folder / INDEX).is_file():
        return {}
    shards = read_object(folder, INDEX).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise ModelFilesError(f"{INDEX} of the base model lists no weights; use a complete model")
    return {str(tensor): str(name) for tensor, name in shards.items()}
