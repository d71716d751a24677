"""Weights as safetensors files of bounded size, written one tensor after another."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from ftpipeline.steps.weight_files import INDEX, SINGLE, read_header, weight_files

Weight = NDArray[np.float32]

SHARD_BYTES = 2 * 2**30
"""Bytes of weights after which the next file begins; so much is held in memory, and a tensor more."""

_METADATA = {"format": "pt"}


def write_shards(weights: Iterable[tuple[str, Weight]], out: Path, limit: int = SHARD_BYTES) -> int:
    """Write weights in the order they come; one file where they fit, else numbered ones with an index.

    Law: equal names and weights in equal order give equal bytes, and `read_weights(out)` yields them again.

    Returns:
        The number of files.
    """
    files: list[list[str]] = []
    total = 0
    for shard in _packed(weights, limit):
        files.append(sorted(shard))
        total += sum(weight.nbytes for weight in shard.values())
        save_file(dict(sorted(shard.items())), out / _part(len(files)), metadata=_METADATA)
    if len(files) == 1:
        (out / _part(1)).rename(out / SINGLE)
        return 1
    names = [f"model-{number:05d}-of-{len(files):05d}.safetensors" for number in range(1, len(files) + 1)]
    for number, name in enumerate(names, 1):
        (out / _part(number)).rename(out / name)
    places = {weight: name for name, held in zip(names, files, strict=True) for weight in held}
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    (out / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return len(files)


def _packed(weights: Iterable[tuple[str, Weight]], limit: int) -> Iterator[Mapping[str, Weight]]:
    shard: dict[str, Weight] = {}
    held = 0
    for name, weight in weights:
        if shard and held + weight.nbytes > limit:
            yield shard
            shard, held = {}, 0
        shard[name] = np.ascontiguousarray(weight)
        held += weight.nbytes
    yield shard


def _part(number: int) -> str:
    return f"part-{number}.safetensors"


def read_weights(folder: Path) -> Iterator[tuple[str, Weight]]:
    """Yield every fp32 weight of a model folder by name, one after another."""
    places = {name: folder / file for file in weight_files(folder) for name in read_header(folder / file)}
    for name in sorted(places):
        with safe_open(places[name], framework="numpy") as file:
            yield name, file.get_tensor(name)
