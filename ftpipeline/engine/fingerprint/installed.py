"""Which installed distribution provides a module, read from the folder names and file lists of the installation."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_METADATA_SUFFIXES = (".dist-info", ".egg-info")
_RECORDED_TOP = re.compile(rb"^([A-Za-z_]\w*)(?:/|\.py,|\.[\w-]+\.so,)", re.MULTILINE)


def normalised(name: str) -> str:
    """Return a distribution's name in the one spelling it is compared in."""
    return re.sub(r"[-_.]+", "-", name).lower()


def providers_of(module: str) -> tuple[str, ...]:
    """Return the distributions that provide the top-level package of `module`; empty if none does.

    The names are normalised. Packages shared by several distributions (namespaces) name all of them.
    """
    top = module.partition(".")[0]
    return () if top in sys.stdlib_module_names else tuple(sorted(_providers(tuple(sys.path)).get(top, ())))


def declaring_entry_points() -> tuple[str, ...]:
    """Return the distributions that declare entry points."""
    found = {name for name, folder in _metadata_folders(sys.path) if (folder / "entry_points.txt").is_file()}
    return tuple(sorted(found))


@cache
def _providers(path: tuple[str, ...]) -> dict[str, set[str]]:
    table: dict[str, set[str]] = {}
    for name, folder in _metadata_folders(path):
        for top in _tops(folder):
            table.setdefault(top, set()).add(name)
    return table


def _metadata_folders(path: Iterator[str] | list[str] | tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for entry in dict.fromkeys(path):
        folder = Path(entry or ".")
        for child in folder.iterdir() if folder.is_dir() else ():
            if child.suffix in _METADATA_SUFFIXES and child.is_dir():
                yield normalised(child.name.partition("-")[0]), child


def _tops(folder: Path) -> set[str]:
    listed = folder / "top_level.txt"
    if listed.is_file():
        return set(listed.read_text("utf-8").split())
    record = folder / "RECORD"
    return {top.decode() for top in _RECORDED_TOP.findall(record.read_bytes())} if record.is_file() else set()
